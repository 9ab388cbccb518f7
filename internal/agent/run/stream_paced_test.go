package run_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// TestAWorkerLearnsOfAReader checks that it does so from its next write, that the write is made all
// the same, and that a reader of a run that has readers already writes nothing.
func TestAWorkerLearnsOfAReader(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("hi")
	show(a, "m", "one")
	f.flush(a)
	if a.Run.HasReader {
		t.Error("the worker knows of a reader that has not come")
	}
	first := f.follow(r, 0)
	first.until(run.EventMessages)
	show(a, "m", "two")
	f.flush(a)
	if !a.Run.HasReader {
		t.Error("the worker does not know of the reader")
	}
	before := f.table.transactions.Load()
	second := f.follow(r, 0)
	second.until(run.EventMessages)
	show(a, "m", "three")
	f.flush(a)
	if wrote := f.table.transactions.Load() - before; wrote != 2 {
		t.Errorf("the second reader and the flush took %d writes, want the batch and the move of the flush", wrote)
	}
	f.finish(a)
	if diff := cmp.Diff(first.wait(t), second.wait(t)); diff != "" {
		t.Errorf("events of both readers (-first +second):\n%s", diff)
	}
}

// TestARunThatIsCreatedByItsReader checks that the worker knows of this reader from the beginning,
// and that the reader writes nothing.
func TestARunThatIsCreatedByItsReader(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	request := say("hi", run.Enqueue)
	request.Streamed = true
	r, err := f.runs.Create(t.Context(), f.ref, request)
	f.must(err)
	reader := f.follow(r, 0)
	a := f.claim(r)
	if !a.Run.HasReader {
		t.Error("the worker does not know of the reader")
	}
	reader.until(run.EventMetadata)
	if wrote := f.table.transactions.Load(); wrote != 2 {
		t.Errorf("got %d transactions, want the creation and the claim", wrote)
	}
	f.finish(a)
	reader.wait(t)
}

// TestAReaderIsNoFence checks that a worker whose write finds a reader is fenced off in the same
// way as any other worker, also if it loses the run between the refused write and the next one.
func TestAReaderIsNoFence(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(*fixture, run.Run){
		"an interrupt":   func(f *fixture, _ run.Run) { f.create("stop", run.Interrupt) },
		"another worker": func(f *fixture, r run.Run) { f.claim(r) },
	} {
		for _, between := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", between the writes: ", between), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				r, a := f.started("hi")
				f.follow(r, 0).until(run.EventMetadata)
				if between {
					f.table.beforeNext(func() { // the refused write
						f.table.beforeNext(func() { take(f, r) })
					})
				} else {
					take(f, r)
				}
				show(a, "m", "lost")
				f.wantFenced(a.Flush(t.Context()))
				f.must(f.runs.Shown(t.Context(), f.get(r), func(events []run.Event) error {
					for _, event := range events {
						if event.Name == run.EventMessages {
							t.Errorf("a reader sees %s", event.Data)
						}
					}
					return nil
				}))
			})
		}
	}
}

// TestAStoreThatIsNotPacedWritesNothingForReaders checks the store of one machine.
func TestAStoreThatIsNotPacedWritesNothingForReaders(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runs = run.NewStore(run.Config{Table: f.table, Threads: thread.NewStore(f.table, f.hand.now, quota.Limits{}, slog.Default()), Workflow: f.engine, Now: f.hand.now})
	request := say("hi", run.Enqueue)
	request.Streamed = true
	r, err := f.runs.Create(t.Context(), f.ref, request)
	f.must(err)
	a := f.claim(r)
	before := f.table.transactions.Load()
	reader := f.follow(r, 0)
	reader.until(run.EventMetadata)
	if wrote := f.table.transactions.Load() - before; wrote != 0 {
		t.Errorf("the reader took %d transactions", wrote)
	}
	f.finish(a)
	reader.wait(t)
	if f.get(r).HasReader {
		t.Error("the run has a reader")
	}
}
