package stack

import (
	"context"
	"log/slog"
	"time"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/clock"
)

// Figures writes log lines from which CloudWatch makes metrics of runs, for the whole stack and
// for each deployment: each line is in CloudWatch's embedded metric format.
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

// metric is the definition of a metric, as the format names its members.
type metric struct{ Name, Unit string }

// Started implements run.Observer.
func (f Figures) Started(ctx context.Context, started run.Run, waited time.Duration) {
	f.write(ctx, "run started", started, []metric{{"RunsStarted", "Count"}, {"QueueTime", "Milliseconds"}}, 1, waited.Milliseconds())
}

// Ended implements run.Observer.
func (f Figures) Ended(ctx context.Context, ended run.Run) {
	failed := 0
	if ended.Status == run.Error || ended.Status == run.Timeout {
		failed = 1
	}
	f.write(ctx, "run ended", ended, []metric{{"RunsEnded", "Count"}, {"RunsFailed", "Count"}}, 1, failed)
}

// write writes one line; values are the values of the metrics. The format wants the values and
// the dimensions as members of the line itself.
func (f Figures) write(ctx context.Context, text string, of run.Run, metrics []metric, values ...any) {
	type directive struct {
		Namespace  string
		Dimensions [][]string
		Metrics    []metric
	}
	attrs := []slog.Attr{
		slog.Any("_aws", map[string]any{
			"Timestamp":         f.Now().UnixMilli(),
			"CloudWatchMetrics": []directive{{Namespace: f.Namespace, Dimensions: [][]string{{}, {"Deployment"}}, Metrics: metrics}},
		}),
		slog.String("Deployment", of.Deployment), slog.String("run", of.Run), slog.String("status", string(of.Status)),
	}
	for n, m := range metrics {
		attrs = append(attrs, slog.Any(m.Name, values[n]))
	}
	f.Log.LogAttrs(ctx, slog.LevelInfo, text, attrs...)
}
