package runner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

// nothing is the answer of an agent that sends nothing.
func nothing(context.Context, graph.Invocation, func(string, any)) error { return nil }

// never is a delay longer than any test.
const never = 24 * time.Hour

// onlyWhenFull makes the runner write events only when they fill a batch, and at the end.
func onlyWhenFull(c *runner.Config) { c.FlushDelay, c.Heartbeat = never, never }

// TestARunTakesFiveTransactions counts its creation, the start of its workflow, the claim, the
// end, and the end of its workflow.
func TestARunTakesFiveTransactions(t *testing.T) {
	t.Parallel()
	f := newFixture(t, graphtest.Start(t, nothing), onlyWhenFull)
	ref := f.newThread()
	for _, name := range []string{"the first run", "a later run"} {
		f.table.transactions.Store(0)
		f.join(f.create(ref, name, run.Enqueue))
		<-f.engine.ended
		if got := f.table.transactions.Load(); got != 5 {
			t.Errorf("%s took %d transactions, want 5", name, got)
		}
	}
}

// TestEventsAreWrittenInBatches checks that events that arrive close together are written
// together, not one by one.
func TestEventsAreWrittenInBatches(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		emit func(emit func(string, any), i int)
		// want is the number of transactions in addition to the transactions of a run without
		// events: 300 events fill one batch of 256, or five of 60 updates.
		want int64
	}{
		"chunks":  {func(emit func(string, any), i int) { emit(graph.EventMessages, chunk("m", "x")) }, 1},
		"updates": {func(emit func(string, any), i int) { emit(graph.EventUpdates, update(fmt.Sprint("m", i), "")) }, 5},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, graphtest.Start(t, func(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
				for i := range 300 {
					test.emit(emit, i)
				}
				return nil
			}), onlyWhenFull)
			thread := f.newThread()
			f.table.transactions.Store(0)
			if got := f.join(f.create(thread, "hi", run.Enqueue)); got.Status != run.Success {
				t.Fatalf("got status %s, failure %v", got.Status, got.Failure)
			}
			<-f.engine.ended
			if got := f.table.transactions.Load() - 5; got != test.want {
				t.Errorf("300 events took %d transactions, want %d", got, test.want)
			}
		})
	}
}

// TestALoneEventIsWrittenSoon checks this although no other event comes and the run goes on.
func TestALoneEventIsWrittenSoon(t *testing.T) {
	t.Parallel()
	seen := make(chan struct{})
	f, r := talk(t, func(ctx context.Context, _ graph.Invocation, emit func(string, any)) error {
		emit(graph.EventCustom, "x")
		select {
		case <-seen:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, func(c *runner.Config) { c.Heartbeat = never })
	f.until(r, graph.EventCustom)
	close(seen)
	if got := f.join(r); got.Status != run.Success || got.Attempt != 1 {
		t.Errorf("got status %s of attempt %d", got.Status, got.Attempt)
	}
}

// TestASilentAgentKeepsItsLease checks that the heartbeats of its worker renew the lease: no
// other worker is sent, however long the agent takes.
func TestASilentAgentKeepsItsLease(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	f, r := talk(t, func(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
		emit(graph.EventCustom, "thinking")
		<-end
		return nil
	}, func(c *runner.Config) { c.Heartbeat, c.SilentHeartbeat = time.Millisecond, 2*time.Millisecond })
	f.until(r, graph.EventCustom)
	watcher := f.table.Watch(r.Key())
	defer watcher.Stop()
	for range 6 {
		f.clock.Pass(11 * time.Second)
		moved := f.clock.Now()
		for got := r; got.Updated.Before(moved); { // until a heartbeat has written
			<-watcher.C()
			var err error
			got, err = f.runs.Get(t.Context(), r.Ref)
			f.must(err)
		}
		before := f.table.transactions.Load()
		f.must(f.runs.Rescue(t.Context(), f.clock.Now()))
		if after := f.table.transactions.Load(); after != before {
			t.Error("the lease was over, though its worker is alive")
		}
	}
	close(end)
	if got := f.join(r); got.Status != run.Success || got.Attempt != 1 || got.Dispatches != 1 {
		t.Errorf("got status %s of attempt %d after %d dispatches", got.Status, got.Attempt, got.Dispatches)
	}
}

// TestAFlushIntervalSpreadsTheWrites checks the writes of one attempt. The first event after a
// silence is written at once. Later events wait, also for heartbeats, until the interval is
// over, the batch is full or the run ends.
func TestAFlushIntervalSpreadsTheWrites(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		more int
		want []int
	}{"a few": {3, []int{3}}, "a batch": {300, []int{256, 44}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, emitted, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
			f := newFixture(t, graphtest.Start(t, func(_ context.Context, invocation graph.Invocation, emit func(string, any)) error {
				if strings.Contains(string(invocation.Input), "other") {
					return nil
				}
				emit(graph.EventCustom, "x")
				<-first
				for range test.more {
					emit(graph.EventMessages, chunk("m", "x"))
				}
				close(emitted)
				<-end
				return nil
			}), func(c *runner.Config) { c.FlushInterval, c.Heartbeat = never, time.Millisecond })
			r := f.create(f.newThread(), "hi", run.Enqueue)
			f.until(r, graph.EventCustom)
			close(first)
			<-emitted
			for range 20 { // this gives it time to write too early
				f.join(f.create(f.newThread(), "other", run.Enqueue))
			}
			close(end)
			f.join(r)
			later := f.batches(r)
			// The first three are the metadata, the values with the input, and the first event.
			for before := 3; before > 0 && len(later) > 0; later = later[1:] {
				before -= later[0]
			}
			if diff := cmp.Diff(test.want, later); diff != "" {
				t.Errorf("events by batch (-want +got):\n%s", diff)
			}
		})
	}
}

// batches returns how many events were written in each batch.
func (f *fixture) batches(r run.Run) []int {
	f.t.Helper()
	var sizes []int
	f.must(f.runs.Stream(f.t.Context(), r, 0, func(batch []run.Event) error {
		sizes = append(sizes, len(batch))
		return nil
	}))
	return sizes
}

// TestAFlushIntervalEnds checks this although the agent sends nothing more.
func TestAFlushIntervalEnds(t *testing.T) {
	t.Parallel()
	seen := make(chan struct{})
	f, r := talk(t, func(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
		emit(graph.EventCustom, "x")
		<-seen
		emit(graph.EventMessages, chunk("m", "x"))
		<-seen
		return nil
	}, func(c *runner.Config) { c.FlushInterval, c.Heartbeat = 20*time.Millisecond, never })
	f.until(r, graph.EventCustom)
	seen <- struct{}{}
	f.until(r, graph.EventMessages)
	seen <- struct{}{}
	if got := f.join(r); got.Status != run.Success || got.Attempt != 1 {
		t.Errorf("got status %s of attempt %d", got.Status, got.Attempt)
	}
}

// TestASilentAgentsInputIsShown checks that the next heartbeat shows the input, although the
// agent has not yet shown whether it shows the input itself. From then on the worker looks only as
// often as it is told: here it does not renew the lease.
func TestASilentAgentsInputIsShown(t *testing.T) {
	t.Parallel()
	seen := make(chan struct{})
	f, r := talk(t, func(_ context.Context, invocation graph.Invocation, _ func(string, any)) error {
		if !strings.Contains(string(invocation.Input), "other") {
			<-seen
		}
		return nil
	}, func(c *runner.Config) { c.Heartbeat, c.SilentHeartbeat = time.Millisecond, never })
	f.until(r, graph.EventValues)
	f.clock.Pass(11 * time.Second)
	moved := f.clock.Now()
	for range 20 { // this gives it time to look too early
		f.join(f.create(f.newThread(), "other", run.Enqueue))
	}
	got, err := f.runs.Get(t.Context(), r.Ref)
	f.must(err)
	if !got.Updated.Before(moved) {
		t.Error("the lease was renewed")
	}
	close(seen)
	if got := f.join(r); got.Status != run.Success || got.Attempt != 1 {
		t.Errorf("got status %s of attempt %d", got.Status, got.Attempt)
	}
}

// TestARunWithoutReadersIsWrittenSeldom checks that events wait for the longer interval while no
// reader waits for them, and for the shorter one once a reader has come.
func TestARunWithoutReadersIsWrittenSeldom(t *testing.T) {
	t.Parallel()
	for _, hasReader := range []bool{false, true} {
		t.Run(fmt.Sprint("has reader: ", hasReader), func(t *testing.T) {
			t.Parallel()
			begin, end := make(chan struct{}), make(chan struct{})
			f := newFixture(t, graphtest.Start(t, func(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
				<-begin
				emit(graph.EventCustom, "x")
				emit(graph.EventMessages, chunk("m", "x"))
				<-end
				emit(graph.EventMessages, chunk("m", "y"))
				return nil
			}), func(c *runner.Config) {
				c.FlushDelay, c.FlushInterval, c.ReaderlessInterval, c.Heartbeat = time.Nanosecond, time.Millisecond, never, never
			})
			f.runs = run.NewStore(run.Config{Table: f.table, Threads: f.threads, Workflow: f, Now: f.clock.Now, Paced: true})
			f.config.Runs = f.runs
			f.startEngine()
			r := f.create(f.newThread(), "hi", run.Enqueue)
			if hasReader {
				f.until(r, run.EventMetadata)
			}
			close(begin)
			if hasReader {
				f.until(r, graph.EventMessages) // although the agent goes on
			}
			close(end)
			f.join(r)
			// The batches are the start, the first event, and all others.
			if batches := f.batches(r); !hasReader && len(batches) > 3 {
				t.Errorf("got the batches %v", batches)
			}
		})
	}
}
