package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// wantReads checks how often a function reads the table.
func (f *fixture) wantReads(what string, want int64, do func()) {
	f.t.Helper()
	f.table.reads.Store(0)
	do()
	if got := f.table.reads.Load(); got != want {
		f.t.Errorf("%s: got %d reads, want %d", what, got, want)
	}
}

// TestARunThatHasEndedIsReadOnce checks that a caller that waits for the end of a run reads
// the run once, and that a stream of a run that was read does not read the run again.
func TestARunThatHasEndedIsReadOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("1")
	f.finish(a)
	f.wantReads("wait for the end", 1, func() {
		if ended, err := f.runs.Await(t.Context(), r.Ref); err != nil || ended.Status != run.Success {
			t.Errorf("got %s, %v", ended.Status, err)
		}
	})
	ended := f.get(r)
	f.wantReads("stream, of which the events", 1, func() {
		f.must(f.otherProcess().Stream(t.Context(), ended, 0, func([]run.Event) error { return nil }))
	})
}

// TestTheActiveRunIsReadOnce checks that a run that is active in the lock, which was read after the
// run, is not read again. The lock of a queued run may be newer than the run, so it is.
func TestTheActiveRunIsReadOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	active, queued := f.create("1", run.Enqueue), f.create("2", run.Enqueue)
	for r, want := range map[*run.Run]int64{&active: 2, &queued: 3} {
		f.wantReads("read of a pending run", want, func() {
			if got := f.get(*r); got.Status != run.Pending {
				t.Errorf("got status %s", got.Status)
			}
		})
	}
}

// TestTheStateIsKnownWithTheEndOfItsRun has a reader read the state as soon as the end of the run
// is in the table, before the worker goes on. The state has more checkpoints than one read finds.
func TestTheStateIsKnownWithTheEndOfItsRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("1")
	for i := range 10 {
		f.answer(a, fmt.Sprint("m", i), "x")
	}
	f.table.afterNext(func() {
		f.wantReads("run and state", 2, func() {
			if left, err := f.runs.Result(t.Context(), f.get(r)); err != nil || left.At.Number != 10 {
				t.Errorf("got checkpoint %d, %v", left.At.Number, err)
			}
		})
	})
	f.finish(a)
}

// TestWhoFollowsARunHereReadsNoEvents checks that a reader in this process reads no events
// from the table, because they were written in this process. No events are remembered for a
// run without readers.
func TestWhoFollowsARunHereReadsNoEvents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("1")
	first, goOn, done := make(chan int64), make(chan struct{}), make(chan error)
	go func() { // a slow reader that follows the run all the time
		done <- f.runs.Stream(t.Context(), r, 0, func(events []run.Event) error {
			if events[0].Name == run.EventMetadata {
				first <- events[len(events)-1].Position
			}
			<-goOn
			return nil
		})
	}()
	begun := <-first // the earlier events were written before a reader followed
	for range 3 {
		a.Show("custom", json.RawMessage(`{"text": "Hello"}`))
		f.flush(a)
	}
	f.answer(a, "m", "Hello")
	f.finish(a)
	ended := f.get(r)
	stream := func(runs *run.Store, after int64) func() {
		return func() { f.must(runs.Stream(t.Context(), ended, after, func([]run.Event) error { return nil })) }
	}
	f.wantReads("nothing of what was followed", 0, stream(f.runs, begun))
	f.wantReads("what came before, and all behind it", 1, stream(f.runs, 0))
	f.wantReads("all events, of another process", 1, stream(f.otherProcess(), 0))
	close(goOn)
	f.must(<-done)
	_, b := f.started("2")
	b.Show("custom", json.RawMessage(`1`))
	f.finish(b)
	ended = f.get(b.Run)
	f.wantReads("events that nobody followed", 1, stream(f.runs, 0))
}

// TestWhoSealsReadsEverythingOnce checks the reads of sealing, because a client that
// interrupts a run waits for each of them.
func TestWhoSealsReadsEverythingOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("1")
	show(a, "m", "Hel")
	f.flush(a)
	second := f.create("2", run.Interrupt)
	f.wantReads("thread, run, state, runs to seal, events, pending updates", 6, func() { f.claim(second) })
	f.create("3", run.Interrupt)
	f.wantReads("thread, state, runs to seal", 3, func() {
		if _, _, err := f.runs.State(t.Context(), f.ref); err != nil {
			t.Error(err)
		}
	})
	f.wantReads("thread, state", 2, func() {
		if _, _, err := f.runs.State(t.Context(), f.ref); err != nil {
			t.Error(err)
		}
	})
}

// TestAReaderOfARunThatWasTakenUp checks that changes of the thread's lock by other requests
// do not wake the reader.
func TestAReaderOfARunThatWasTakenUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("1")
	ended := make(chan run.Status, 1)
	live := f.follow(r, 0)
	live.until(run.EventMetadata)
	show(a, "m", "x")
	f.flush(a)
	live.until(run.EventMessages)
	waiting, err := f.runs.WatchEnd(t.Context(), r.Ref)
	f.must(err)
	go func() {
		found, err := waiting.End(t.Context())
		if err != nil {
			t.Error(err)
		}
		ended <- found.Status
	}()
	f.table.reads.Store(0)
	const others = 20
	for range others {
		f.create("more", run.Enqueue) // each of these reads the thread once
	}
	if got := f.table.reads.Load(); got > others+2 { // each reader may not have begun to wait yet
		t.Errorf("%d changes of the lock made %d reads", others, got)
	}
	f.finish(a)
	live.wait(t)
	if got := <-ended; got != run.Success {
		t.Errorf("got status %s", got)
	}
}

// lagging is a table whose queries that may lag behind lack one of the items that they find.
type lagging struct {
	table.Table
	without int
}

func (l lagging) Query(ctx context.Context, query table.Query) (table.Page, error) {
	page, err := l.Table.Query(ctx, query)
	if query.Eventual && l.without < len(page.Items) {
		page.Items = slices.Delete(page.Items, l.without, l.without+1)
	}
	return page, err
}

// TestAReadThatLagsBehindLosesNoEvent replays a run while each of its batches is not yet where an
// eventual read looks.
func TestAReadThatLagsBehindLosesNoEvent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("hi")
	for i := range 3 {
		show(a, "m", fmt.Sprint(i))
		show(a, "m", ".")
		f.flush(a)
	}
	f.finish(a)
	want := f.replay(r, 0)
	for without := range 5 {
		runs := run.NewStore(run.Config{Table: lagging{f.table, without}, Threads: f.threads, Workflow: f.engine, Paced: true, Now: f.hand.now})
		if diff := cmp.Diff(want, f.replayIn(runs, r, 0)); diff != "" {
			t.Errorf("without batch %d (-want +got):\n%s", without, diff)
		}
	}
}

// TestAListOfLargeRequests checks that a list ends before the requests would not fit into
// memory.
func TestAListOfLargeRequests(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const size = 100_000
	request := say("x", run.Enqueue)
	request.Config = json.RawMessage(`{"text":"` + strings.Repeat("x", size) + `"}`)
	for range 3 {
		r, err := f.runs.Create(t.Context(), f.ref, request)
		f.must(err)
		item, err := f.table.Get(t.Context(), r.Key())
		f.must(err)
		if got := item.Int("bulk"); got < size || got > size+1000 {
			t.Errorf("the request is said to have %d bytes", got)
		}
	}
	list := func(offset, want int) {
		t.Helper()
		found, _, err := f.runs.List(t.Context(), f.ref, run.Filter{Window: record.Window{Offset: offset, Limit: 10}})
		if err != nil || len(found) != want {
			t.Errorf("got %d runs behind %d, error %v, want %d", len(found), offset, err, want)
		}
		for _, r := range found {
			if len(r.Config) < size {
				t.Errorf("run %s is shown without its request", r.Run)
			}
		}
	}
	list(0, 3)
	runs, _, err := f.runs.List(t.Context(), f.ref, run.Filter{Window: record.Window{Limit: 10}})
	f.must(err)
	for _, r := range runs { // as if their requests were as large
		f.must(f.table.Transact(t.Context(), table.Update{Key: r.Key(), Set: table.Attrs{"bulk": int64(40 << 20)}}))
	}
	list(0, 1)
	list(2, 1)
}
