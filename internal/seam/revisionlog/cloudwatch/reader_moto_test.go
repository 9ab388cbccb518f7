//go:build moto

package cloudwatch_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/cloudwatch"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/mototest"
)

// TestMotoLog reads the lines that two replicas have written. moto ignores the prefix of
// streams, so there are no other streams.
func TestMotoLog(t *testing.T) {
	t.Parallel()
	cfg := awsConfig(mototest.Start(t))
	logs := cloudwatchlogs.NewFromConfig(cfg)
	log := revisionlog.Log{Revision: id.New(time.Now()), Kind: revisionlog.Deploy}
	group := aws.String("/slipway/agents")
	if _, err := logs.CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: group}); err != nil {
		t.Fatal(err)
	}
	began := time.Now().UnixMilli()
	for i, stream := range []string{log.Revision + "/Main/1", log.Revision + "/Main/2"} {
		if _, err := logs.CreateLogStream(t.Context(), &cloudwatchlogs.CreateLogStreamInput{LogGroupName: group, LogStreamName: aws.String(stream)}); err != nil {
			t.Fatal(err)
		}
		var events []types.InputLogEvent
		for n := range int64(5) {
			events = append(events, types.InputLogEvent{Message: aws.String(stream[len(stream)-1:]), Timestamp: aws.Int64(began + 2*n + int64(i))})
		}
		if _, err := logs.PutLogEvents(t.Context(), &cloudwatchlogs.PutLogEventsInput{LogGroupName: group, LogStreamName: aws.String(stream), LogEvents: events}); err != nil {
			t.Fatal(err)
		}
	}
	reader := cloudwatch.New(cloudwatch.Config{AWS: cfg, Builds: "/slipway/none", Agents: *group})
	for limit := 1; limit <= 11; limit += 5 {
		if got := all(t, reader, log, revisionlog.Query{Limit: limit}); got != strings.Repeat("1, 2, ", 4)+"1, 2" {
			t.Errorf("pages of %d: got %s", limit, got)
		}
	}
	if got := all(t, reader, revisionlog.Log{Revision: log.Revision, Kind: revisionlog.Build}, revisionlog.Query{Limit: 10}); got != "" {
		t.Errorf("a group that is not there: got %s", got)
	}
}

// TestMotoAppend adds lines to a new stream, also when two callers create it at once, and
// beside the lines of a replica.
func TestMotoAppend(t *testing.T) {
	t.Parallel()
	cfg := awsConfig(mototest.Start(t))
	client := cloudwatchlogs.NewFromConfig(cfg)
	group := aws.String("/slipway/agents")
	if _, err := client.CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: group}); err != nil {
		t.Fatal(err)
	}
	logs := cloudwatch.New(cloudwatch.Config{AWS: cfg, Builds: "/slipway/builds", Agents: *group})
	log := revisionlog.Log{Revision: id.New(time.Now()), Kind: revisionlog.Deploy}
	check.Must(t, logs.Append(t.Context(), log, []string{"one", "", "three"}))
	var appending sync.WaitGroup
	for range 8 {
		appending.Go(func() {
			if err := logs.Append(t.Context(), log, []string{"x"}); err != nil {
				t.Error(err)
			}
		})
	}
	appending.Wait()
	if got := all(t, logs, log, revisionlog.Query{Limit: 4}); got != "one, , three"+strings.Repeat(", x", 8) {
		t.Errorf("got %s", got)
	}
	streams, err := client.DescribeLogStreams(t.Context(), &cloudwatchlogs.DescribeLogStreamsInput{LogGroupName: group})
	if err != nil || len(streams.LogStreams) != 1 || *streams.LogStreams[0].LogStreamName != log.Revision+"/listener" {
		t.Errorf("got %+v (%v)", streams, err)
	}
	for _, refused := range []revisionlog.Log{{Revision: "../x", Kind: revisionlog.Deploy}, {Revision: log.Revision, Kind: "run"}} {
		if err := logs.Append(t.Context(), refused, []string{"x"}); err == nil {
			t.Errorf("%v: got no error", refused)
		}
	}
	if err := logs.Append(t.Context(), revisionlog.Log{Revision: log.Revision, Kind: revisionlog.Build}, []string{"x"}); err == nil {
		t.Error("a group that is not there: got no error")
	}
}
