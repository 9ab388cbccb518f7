package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
)

// pace is how fast slices end. Each slice that ended before the agent was called is followed by a
// slice that is four times as long, because a busy machine is slow.
type pace struct {
	missed atomic.Int64
	// called is how often the agent was called.
	called atomic.Int64
}

// next returns the length of the next slice.
func (p *pace) next() time.Duration { return 100 * time.Millisecond << (2 * p.missed.Add(1)) }

// untilCalled is next, but there is no end of slices that begin after the agent was called.
func (p *pace) untilCalled() time.Duration {
	if p.called.Load() > 0 {
		return never
	}
	return p.next()
}

// call notes a call of the agent and returns how many calls there were.
func (p *pace) call() int64 {
	p.missed.Store(0)
	return p.called.Add(1)
}

// TestARunGoesOnInTheNextSlice checks that a run goes on when its worker's time is over,
// through more slices than a run may have attempts, and makes each step once.
func TestARunGoesOnInTheNextSlice(t *testing.T) {
	t.Parallel()
	const steps = 5
	stopped := make(chan struct{}, 10*steps)
	var slices pace
	f := newSlicedFixture(t, graphtest.Start(t, func(ctx context.Context, invocation graph.Invocation, emit func(string, any)) error {
		slices.call()
		step := strings.Count(string(invocation.State.Values), `"content":"step`)
		id := fmt.Sprint("step ", step+1)
		emit(graph.EventMessages, chunk(id, "st"))
		emit(graph.EventUpdates, update(id, ""))
		if step+1 == steps {
			return nil
		}
		emit(graph.EventMessages, chunk("cut off", fmt.Sprint("after ", step)))
		<-ctx.Done() // wait until the connection is closed
		stopped <- struct{}{}
		return ctx.Err()
	}), slices.next, nil)
	r := f.create(f.newThread(), "hi", run.Enqueue)
	got := f.join(r)
	if got.Status != run.Success || got.Attempt < steps || got.Failures != 0 {
		t.Errorf("got status %s of attempt %d after %d failures: %v", got.Status, got.Attempt, got.Failures, got.Failure)
	}
	if diff := cmp.Diff([]string{"hi", "step 1", "step 2", "step 3", "step 4", "step 5"}, f.messages(r)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	for range steps - 1 {
		<-stopped // the agent may see the end of the last connection later
	}
	if got, want := <-f.engine.ended, "ExecutionSucceeded"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := f.target.callers.Load(); got != 0 {
		t.Errorf("%d callers were not counted out", got)
	}
}

// TestARunWithoutProgressEnds checks that the run ends after three slices, and that the next
// run has its turn.
func TestARunWithoutProgressEnds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		slice       time.Duration
		invocations int64
		messages    []string
	}{
		"of an agent that never comes to an end":             {400 * time.Millisecond, 3, []string{"one", "I was say..."}},
		"of workers whose time was up before they had begun": {-time.Second, 0, []string{"one"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.InTime(t, test.slice, func(slice time.Duration) bool {
				return runWithoutProgressEnds(t, slice, test.invocations, test.messages)
			})
		})
	}
}

// runWithoutProgressEnds reports whether the slices were long enough for these invocations.
func runWithoutProgressEnds(t *testing.T, slice time.Duration, wanted int64, messages []string) bool {
	t.Helper()
	var invocations atomic.Int64
	f := newSlicedFixture(t, graphtest.Start(t, func(ctx context.Context, _ graph.Invocation, emit func(string, any)) error {
		invocations.Add(1)
		emit(graph.EventMessages, chunk("m", "I was say"))
		<-ctx.Done()
		return ctx.Err()
	}), func() time.Duration { return slice }, nil)
	ref := f.newThread()
	first, second := f.create(ref, "one", run.Enqueue), f.create(ref, "two", run.Enqueue)
	got := f.join(first)
	if got.Status != run.Timeout || got.Attempt != run.MaxIdleSlices || got.Failure.Name != "NoProgress" {
		t.Errorf("got status %s, %v, after %d attempts", got.Status, got.Failure, got.Attempt)
	}
	if invocations.Load() < wanted {
		return false
	}
	if diff := cmp.Diff(messages, f.messages(first)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if got := f.join(second).Status; got != run.Timeout {
		t.Errorf("the next run is %s, want the same end", got)
	}
	return true
}

// TestAnInterruptAfterASlice checks that an interrupt finds the output that the slice had
// shown, and that an interrupt in the middle of a handover finds it, too.
func TestAnInterruptAfterASlice(t *testing.T) {
	t.Parallel()
	for _, during := range []bool{false, true} {
		t.Run(fmt.Sprint("in the midst of the handover: ", during), func(t *testing.T) {
			t.Parallel()
			var slices pace
			nextSlice := make(chan struct{}, 10)
			f := newSlicedFixture(t, graphtest.Start(t, func(ctx context.Context, invocation graph.Invocation, emit func(string, any)) error {
				if strings.Contains(string(invocation.Input), "stop") {
					emit(graph.EventUpdates, update("stopped", ""))
					return nil
				}
				if slices.call() == 1 {
					emit(graph.EventMessages, chunk("m", "I was say"))
				} else {
					nextSlice <- struct{}{}
				}
				<-ctx.Done()
				return ctx.Err()
			}), slices.untilCalled, nil)
			ref := f.newThread()
			second := make(chan run.Run, 1)
			if during {
				watch := func(writes []table.Write) {
					if isHandover(writes[0]) && f.table.before.Swap(nil) != nil {
						second <- f.create(ref, "stop", run.Interrupt)
					}
				}
				f.table.before.Store(&watch)
			}
			first := f.create(ref, "hi", run.Enqueue)
			if !during {
				<-nextSlice
				second <- f.create(ref, "stop", run.Interrupt)
			}
			if diff := cmp.Diff([]string{"hi", "I was say...", "stop", "stopped"}, f.messages(<-second)); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			if got := f.join(first).Status; got != run.Interrupted {
				t.Errorf("got status %s, want interrupted", got)
			}
			for range 2 {
				if got, want := <-f.engine.ended, "ExecutionSucceeded"; got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
		})
	}
}

// isHandover reports whether a write is the last write of a slice.
func isHandover(write table.Write) bool {
	change, ok := write.(table.Update)
	if !ok {
		return false
	}
	handed, _ := change.Set["handed"].(int64)
	_, claims := change.Set["attempt"]
	return handed > 0 && !claims
}

// TestAnAgentThatDoesNotComeBeforeTheSlicesEnd checks that the agent is unavailable, and that
// this takes no attempt.
func TestAnAgentThatDoesNotComeBeforeTheSlicesEnd(t *testing.T) {
	t.Parallel()
	f, r := talk(t, nothing, nil)
	<-f.engine.ended
	f.target.acquire = func(ctx context.Context) (compute.Endpoint, error) {
		<-ctx.Done()
		return compute.Endpoint{}, ctx.Err()
	}
	f.config.AgentWait, f.config.Margin = never, never
	ctx, cancel := context.WithTimeout(t.Context(), never+10*time.Millisecond)
	defer cancel()
	before := f.table.transactions.Load()
	input := fmt.Sprintf(`{"step":"Work","workspace_id":"w","deployment_id":"d","thread_id":%q,"run_id":%q}`, r.Thread, r.Run)
	_, err := runner.New(f.config).Task(ctx, json.RawMessage(input))
	if named, ok := errors.AsType[*workflow.TaskError](err); !ok || named.Name != "AgentUnavailable" {
		t.Errorf("got %v, want that the agent is unavailable", err)
	}
	if after := f.table.transactions.Load(); after != before {
		t.Errorf("%d transactions were made", after-before)
	}
}

// TestAFailureInALateSlice checks that such a failure counts as a failure.
func TestAFailureInALateSlice(t *testing.T) {
	t.Parallel()
	var slices pace
	var early atomic.Int64
	f := newSlicedFixture(t, graphtest.Start(t, func(ctx context.Context, invocation graph.Invocation, emit func(string, any)) error {
		emit(graph.EventUpdates, update(fmt.Sprint("step of ", invocation.Attempt), ""))
		if slices.call() > 1 {
			return graphtest.ErrBreak
		}
		early.Store(int64(invocation.Attempt))
		<-ctx.Done()
		return ctx.Err()
	}), slices.untilCalled, nil)
	got := f.join(f.create(f.newThread(), "hi", run.Enqueue))
	if got.Status != run.Error || got.Attempt != early.Load()+run.MaxAttempts || got.Failure.Name != "AgentUnavailable" {
		t.Errorf("got status %s of attempt %d: %v", got.Status, got.Attempt, got.Failure)
	}
}

// TestATaskWithTimeToSpareIsNotCut checks that the deadline does not cut the task short.
func TestATaskWithTimeToSpareIsNotCut(t *testing.T) {
	t.Parallel()
	f := newSlicedFixture(t, graphtest.Start(t, func(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
		emit(graph.EventUpdates, update("m", ""))
		return nil
	}), func() time.Duration { return never }, nil)
	if got := f.join(f.create(f.newThread(), "hi", run.Enqueue)); got.Status != run.Success || got.Attempt != 1 {
		t.Errorf("got status %s of attempt %d", got.Status, got.Attempt)
	}
}

// TestARunOfARevisionThatWasReplaced checks that the run goes on with the next revision when
// the time of its own revision to drain is over. This is no failure, however often it happens.
func TestARunOfARevisionThatWasReplaced(t *testing.T) {
	t.Parallel()
	const revisions = run.MaxAttempts + 2
	var f *fixture
	promoted := make(chan struct{})
	f, r := talk(t, func(_ context.Context, invocation graph.Invocation, emit func(string, any)) error {
		<-promoted
		emit(graph.EventUpdates, update(fmt.Sprint("step ", invocation.Attempt), ""))
		if invocation.Attempt == revisions {
			return nil
		}
		f.target.promoted.Add(1)
		return graphtest.ErrBreak
	}, nil)
	close(promoted)
	got := f.join(r)
	if got.Status != run.Success || got.Attempt != revisions || got.Failures != 0 {
		t.Errorf("got status %s of attempt %d after %d failures: %v", got.Status, got.Attempt, got.Failures, got.Failure)
	}
	if got := len(f.messages(r)); got != 1+revisions {
		t.Errorf("got %d messages, want that of each revision", got)
	}
}
