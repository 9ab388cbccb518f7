package runner_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

// tryOut adds a canary that serves all threads.
func (f *fixture) tryOut(acquire func() (compute.Endpoint, error)) { f.target.canary.Store(&acquire) }

// TestWhatACanaryCannotDo checks that the active release goes on with the work at once, from
// the point that the canary reached. Neither release costs the run one of its attempts.
func TestWhatACanaryCannotDo(t *testing.T) {
	t.Parallel()
	broken := graphtest.Start(t, func(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
		emit(graph.EventUpdates, update("one", ""))
		return graphtest.ErrBreak
	})
	for name, c := range map[string]struct {
		canary   func() (compute.Endpoint, error)
		attempts int64
		want     []string
	}{
		"it is not to be had": {func() (compute.Endpoint, error) {
			return compute.Endpoint{}, &compute.UnavailableError{Status: compute.Status{State: compute.Failed}}
		}, 1, []string{"hi", "two"}},
		"it ends in the middle": {func() (compute.Endpoint, error) { return broken, nil }, 2, []string{"hi", "one", "two"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steady := graphtest.Start(t, func(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
				emit(graph.EventUpdates, update("two", ""))
				return nil
			})
			f := newFixture(t, steady, nil)
			f.tryOut(c.canary)
			r := f.create(f.newThread(), "hi", run.Enqueue)
			got := f.join(r)
			if got.Status != run.Success || got.Attempt != c.attempts || got.Failures != 0 {
				t.Errorf("got status %s of attempt %d with %d failures: %v", got.Status, got.Attempt, got.Failures, got.Failure)
			}
			if diff := cmp.Diff(c.want, f.messages(r)); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			if got, want := <-f.engine.ended, "ExecutionSucceeded"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if callers := f.target.callers.Load(); callers != 0 {
				t.Errorf("%d callers are left", callers)
			}
		})
	}
}

// TestAStateIsChangedByTheReleaseOfItsThread checks that the release of the thread changes the
// state. The active release changes it if the canary is not available, or ends before it has
// sent anything.
func TestAStateIsChangedByTheReleaseOfItsThread(t *testing.T) {
	t.Parallel()
	gone := compute.Endpoint{URL: "http://127.0.0.1:1"} // no other test gets this port
	for name, c := range map[string]struct {
		// canary is the answer of the canary. If it is nil, the canary is not asked: the
		// result of acquire decides.
		canary  func(emit func(string, any)) error
		acquire func() (compute.Endpoint, error)
		want    []string
		fails   bool
	}{
		"it answers":          {canary: func(func(string, any)) error { return nil }, want: []string{"canary"}},
		"it is not to be had": {acquire: func() (compute.Endpoint, error) { return compute.Endpoint{}, &compute.UnavailableError{} }, want: []string{"active"}},
		"it does not listen":  {acquire: func() (compute.Endpoint, error) { return gone, nil }, want: []string{"active"}},
		"it ends at once":     {canary: func(func(string, any)) error { return graphtest.ErrBreak }, want: []string{"canary", "active"}},
		"it refuses":          {canary: func(func(string, any)) error { return errors.New("no") }, want: []string{"canary"}, fails: true},
		"it ends in the middle": {canary: func(emit func(string, any)) error {
			emit(graph.EventUpdates, update("one", ""))
			return graphtest.ErrBreak
		}, want: []string{"canary"}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			asked := []string{}
			agent := func(name string, answer func(func(string, any)) error) compute.Endpoint {
				return graphtest.Start(t, func(_ context.Context, invocation graph.Invocation, emit func(string, any)) error {
					mu.Lock()
					defer mu.Unlock()
					if asked = append(asked, name); invocation.Operation != graph.OperationUpdateState {
						t.Errorf("the %s one is asked to %s", name, invocation.Operation)
					}
					return answer(emit)
				})
			}
			f := newFixture(t, agent("active", func(func(string, any)) error { return nil }), nil)
			if c.acquire == nil {
				canary := agent("canary", c.canary)
				c.acquire = func() (compute.Endpoint, error) { return canary, nil }
			}
			f.tryOut(c.acquire)
			agents := &runner.Agents{
				Deployments: f.target, Target: func(context.Context) (compute.Target, error) { return f.target, nil }, Graph: graph.NewClient(nil), Wait: time.Second,
			}
			err := agents.UpdateState(t.Context(), "w", "d", graph.Invocation{Graph: "agent", ThreadID: f.newThread().Thread}, func(graph.Checkpoint) error { return nil })
			if (err != nil) != c.fails {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(c.want, asked); diff != "" {
				t.Errorf("who was asked (-want +got):\n%s", diff)
			}
			if callers := f.target.callers.Load(); callers != 0 {
				t.Errorf("%d callers are left", callers)
			}
		})
	}
}

// TestTheLimitsOfBothReleasesAreReadOnce checks this while the releases take turns.
func TestTheLimitsOfBothReleasesAreReadOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	read := map[string]int{}
	endpoint := graphtest.Start(t, func(context.Context, graph.Invocation, func(string, any)) error { return nil })
	f := newFixture(t, endpoint, func(c *runner.Config) {
		c.ReadLimits = func(_ context.Context, release compute.Ref) (compute.RunLimits, error) {
			mu.Lock()
			defer mu.Unlock()
			read[release.Revision]++
			return compute.RunLimits{}, nil
		}
	})
	for range 3 {
		for _, tried := range []bool{true, false} {
			f.target.canary.Store(nil)
			if tried {
				f.tryOut(func() (compute.Endpoint, error) { return endpoint, nil })
			}
			if got := f.join(f.create(f.newThread(), "hi", run.Enqueue)); got.Status != run.Success {
				t.Errorf("a run ended as %s", got.Status)
			}
		}
	}
	if diff := cmp.Diff(map[string]int{canaryRevision: 1, fmt.Sprint("revision ", 0): 1}, read); diff != "" {
		t.Errorf("reads of limits (-want +got):\n%s", diff)
	}
}
