package stack_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestFiguresAreInTheEmbeddedMetricFormat reads each line as CloudWatch does: the metrics and
// the dimensions that "_aws" names are numbers and texts of the line itself.
func TestFiguresAreInTheEmbeddedMetricFormat(t *testing.T) {
	t.Parallel()
	var written bytes.Buffer
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	figures := stack.Figures{Log: lambdahost.NewLog(&written, slog.LevelInfo), Namespace: "Slipway/test", Now: func() time.Time { return at }}
	of := run.Run{Ref: run.Ref{Ref: thread.Ref{Workspace: "w", Deployment: "d", Thread: "t"}, Run: "r"}, Status: run.Running}
	figures.Started(t.Context(), of, 1500*time.Millisecond)
	for _, of.Status = range []run.Status{run.Success, run.Interrupted, run.Error, run.Timeout} {
		figures.Ended(t.Context(), of)
	}
	var got []map[string]float64
	for lines := json.NewDecoder(&written); lines.More(); {
		var line map[string]json.RawMessage
		check.Must(t, lines.Decode(&line))
		got = append(got, valuesOf(t, line, at, [][]string{{}, {"Deployment"}}, "Deployment", "d"))
	}
	ended := func(failed float64) map[string]float64 {
		return map[string]float64{"RunsEnded Count": 1, "RunsFailed Count": failed}
	}
	want := []map[string]float64{{"RunsStarted Count": 1, "QueueTime Milliseconds": 1500}, ended(0), ended(0), ended(1), ended(1)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTheMetricOfScalingIsOfTheReleaseAlone: each further dimension would be a metric that costs.
func TestTheMetricOfScalingIsOfTheReleaseAlone(t *testing.T) {
	t.Parallel()
	var written bytes.Buffer
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	figures := stack.Figures{Log: lambdahost.NewLog(&written, slog.LevelInfo), Namespace: "Slipway/test", Now: func() time.Time { return at }}
	figures.Busy(t.Context(), compute.Ref{Workspace: "w", Deployment: "d", Revision: "r"}, 90500*time.Millisecond)
	var line map[string]json.RawMessage
	check.Must(t, json.Unmarshal(written.Bytes(), &line))
	got := valuesOf(t, line, at, [][]string{{"Revision"}}, "Revision", "r")
	if diff := cmp.Diff(map[string]float64{"RunSeconds Seconds": 90.5}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// valuesOf returns the values of a line's metrics by name and unit. It checks the dimensions, and
// the value of one of them.
func valuesOf(t *testing.T, line map[string]json.RawMessage, at time.Time, dimensions [][]string, name, value string) map[string]float64 {
	t.Helper()
	var meta struct {
		Timestamp         int64
		CloudWatchMetrics []struct {
			Namespace  string
			Dimensions [][]string
			Metrics    []struct{ Name, Unit string }
		}
	}
	check.Must(t, json.Unmarshal(line["_aws"], &meta))
	if meta.Timestamp != at.UnixMilli() || len(meta.CloudWatchMetrics) != 1 || meta.CloudWatchMetrics[0].Namespace != "Slipway/test" {
		t.Fatalf("got %+v", meta)
	}
	directive := meta.CloudWatchMetrics[0]
	if diff := cmp.Diff(dimensions, directive.Dimensions); diff != "" || string(line[name]) != strconv.Quote(value) {
		t.Errorf("the %s is %s, dimensions (-want +got):\n%s", name, line[name], diff)
	}
	values := map[string]float64{}
	for _, metric := range directive.Metrics {
		var value float64
		if err := json.Unmarshal(line[metric.Name], &value); err != nil {
			t.Errorf("%s is %s: %v", metric.Name, line[metric.Name], err)
		}
		values[metric.Name+" "+metric.Unit] = value
	}
	return values
}
