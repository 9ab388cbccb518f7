package stack

import (
	"context"
	"log/slog"
	"time"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs/metric"
)

// Figures writes log lines from which CloudWatch makes metrics of runs. Each line is in the
// embedded metric format of CloudWatch.
type Figures struct {
	// Log writes JSON, with attributes as members of the line.
	Log *slog.Logger
	// Namespace is the namespace of the metrics.
	Namespace string
	Now       clock.Clock
}

// figures returns the observer of runs, or nil if the stack has no metrics of runs.
func (s *Stack) figures() run.Observer {
	namespace := s.Get(variableMetrics)
	if namespace == "" {
		return nil
	}
	return Figures{Log: s.Log, Namespace: namespace, Now: clock.System}
}

// measured is a value of a metric.
type measured struct {
	name, unit string
	value      any
}

// Started implements run.Observer.
func (f Figures) Started(ctx context.Context, started run.Run, waited time.Duration) {
	f.writeRun(ctx, "run started", started, measured{"RunsStarted", "Count", 1}, measured{"QueueTime", "Milliseconds", waited.Milliseconds()})
}

// Ended implements run.Observer.
func (f Figures) Ended(ctx context.Context, ended run.Run) {
	failed := 0
	if ended.Status == run.Error || ended.Status == run.Timeout {
		failed = 1
	}
	f.writeRun(ctx, "run ended", ended, measured{"RunsEnded", "Count", 1}, measured{"RunsFailed", "Count", failed})
}

// Busy writes how long the runs of a release have been with its agent, for the release alone: by
// this metric the release's service scales.
func (f Figures) Busy(ctx context.Context, release compute.Ref, worked time.Duration) {
	f.write(ctx, "runs were with their agent", [][]string{{metric.Revision}}, []measured{{metric.Busy, "Seconds", worked.Seconds()}},
		slog.String(metric.Revision, release.Revision), slog.String("deployment", release.Deployment))
}

// writeRun writes a line for the whole stack and for the run's deployment.
func (f Figures) writeRun(ctx context.Context, text string, of run.Run, values ...measured) {
	f.write(ctx, text, [][]string{{}, {"Deployment"}}, values,
		slog.String("Deployment", of.Deployment), slog.String("run", of.Run), slog.String("status", string(of.Status)))
}

// write writes one line. The format wants the values and the dimensions as members of the line
// itself; attrs has the dimensions.
func (f Figures) write(ctx context.Context, text string, dimensions [][]string, values []measured, attrs ...slog.Attr) {
	type defined struct{ Name, Unit string }
	type directive struct {
		Namespace  string
		Dimensions [][]string
		Metrics    []defined
	}
	described := directive{Namespace: f.Namespace, Dimensions: dimensions}
	for _, m := range values {
		described.Metrics = append(described.Metrics, defined{m.name, m.unit})
		attrs = append(attrs, slog.Any(m.name, m.value))
	}
	attrs = append(attrs, slog.Any("_aws", map[string]any{"Timestamp": f.Now().UnixMilli(), "CloudWatchMetrics": []directive{described}}))
	f.Log.LogAttrs(ctx, slog.LevelInfo, text, attrs...)
}
