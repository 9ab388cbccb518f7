package run_test

import (
	"testing"

	"github.com/slipway-run/slipway/internal/run"
)

// wantReads checks how often the table is read by what a function does.
func (f *fixture) wantReads(what string, want int64, do func()) {
	f.t.Helper()
	f.table.reads.Store(0)
	do()
	if got := f.table.reads.Load(); got != want {
		f.t.Errorf("%s: got %d reads, want %d", what, got, want)
	}
}

// TestARunThatHasEndedIsReadOnce by who waits for its end, and not again by who has read it.
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
		f.must(f.runs.Stream(t.Context(), ended, 0, func([]run.Event) error { return nil }))
	})
}

// TestWhoSealsReadsEverythingOnce, as each read of it comes before the answer to who interrupts.
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

// TestAReaderOfARunThatWasTakenUp is not woken by the lock of its thread, which others change.
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
	waiting, err := f.runs.Waiting(t.Context(), r.Ref)
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
		f.create("more", run.Enqueue) // each of which reads the thread once
	}
	if got := f.table.reads.Load(); got > others+2 { // each reader may not have come to its wait yet
		t.Errorf("%d changes of the lock made %d reads", others, got)
	}
	f.finish(a)
	live.wait(t)
	if got := <-ended; got != run.Success {
		t.Errorf("got status %s", got)
	}
}
