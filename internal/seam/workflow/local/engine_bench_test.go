package local_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/infra/statemachines"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// BenchmarkRun measures executions of the run machine from Start to their end, with a function that
// does nothing, for 64 clients.
func BenchmarkRun(b *testing.B) {
	const clients = 64
	var ends sync.Map // execution name -> channel of its end
	done := func(context.Context, json.RawMessage) (json.RawMessage, error) { return []byte(`{"next":"Done"}`), nil }
	e, err := local.New(local.Config{
		Table:         fixtures.Table(b),
		Definitions:   statemachines.Files,
		Substitutions: map[string]string{"RolloutFunctionArn": "rollout", "RunnerFunctionArn": "runner", "WebhookFunctionArn": "webhook"},
		Functions:     map[string]workflow.TaskFunc{"rollout": done, "runner": done, "webhook": done},
		Log:           slog.New(slog.DiscardHandler),
		Observer: func(event local.Event) {
			if event.Type == local.ExecutionSucceeded {
				end, _ := ends.LoadAndDelete(event.Name)
				close(end.(chan struct{}))
			}
		},
	})
	check.Must(b, err)
	b.Cleanup(func() { e.Close(context.Background()) })
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ReportAllocs()
	b.ResetTimer()
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			for left.Add(-1) >= 0 {
				name, end := id.New(time.Now()), make(chan struct{})
				ends.Store(name, end)
				if err := e.Start(b.Context(), workflow.Run, name, []byte(ids)); err != nil {
					b.Error(err)
					return
				}
				<-end
			}
		})
	}
	running.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "executions/s")
}
