package runner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

// BenchmarkRunAndJoin creates runs on threads of their own and waits for the end of each.
func BenchmarkRunAndJoin(b *testing.B) {
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprint("clients=", clients), func(b *testing.B) {
			f := newFixture(b, graphtest.Start(b, nil), nil)
			b.ReportAllocs()
			next := make(chan struct{})
			done := make(chan error)
			for range clients {
				go func() {
					done <- f.serve(next)
				}()
			}
			for b.Loop() {
				next <- struct{}{}
			}
			close(next)
			for range clients {
				if err := <-done; err != nil {
					b.Error(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
		})
	}
}

// serve makes a run on a new thread for each token.
func (f *fixture) serve(next <-chan struct{}) error {
	for range next {
		t, err := f.threads.Create(f.t.Context(), thread.Ref{Workspace: "w", Deployment: "d"}, nil, nil, false)
		if err != nil {
			return err
		}
		r, err := f.runs.Create(f.t.Context(), t.Ref, run.Request{Graph: "agent", Payload: run.Payload{Input: input(`{"messages":["hi"]}`)}})
		if err != nil {
			return err
		}
		if r, err = f.runs.Await(f.t.Context(), r.Ref); err != nil {
			return err
		}
		if r.Status != run.Success {
			return fmt.Errorf("run is %s: %v", r.Status, r.Failure)
		}
	}
	return nil
}

// BenchmarkRunOnALongThread makes runs on a thread whose values take 1 MiB.
func BenchmarkRunOnALongThread(b *testing.B) {
	f := newFixture(b, graphtest.Start(b, answerAnything), nil)
	ref := f.newThread()
	f.join(f.give(ref, fmt.Sprintf(`{"messages":[{"type":"human","id":"long","content":%q}]}`, strings.Repeat("x", 1<<20))))
	b.ReportAllocs()
	for b.Loop() {
		f.join(f.create(ref, "more", run.Enqueue))
	}
}

func answerAnything(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
	emit(graph.EventUpdates, update("answer", "yes"))
	return nil
}
