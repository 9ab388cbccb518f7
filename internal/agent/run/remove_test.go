package run_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestARunWhoseDeletionEndsHalfway can be deleted again, and then nothing of it is left.
func TestARunWhoseDeletionEndsHalfway(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("hi")
	for range 10 {
		show(a, "m", "shown")
		f.flush(a)
	}
	f.finish(a)
	tb := &fixtures.Halfway{Table: f.table}
	tb.Dies.Store(true)
	runs := run.NewStore(run.Config{Table: tb, Threads: f.threads, Workflow: f.engine, Paced: true, Now: f.hand.now})
	if err := runs.Delete(t.Context(), r.Ref); !errors.Is(err, fixtures.ErrHalfway) {
		t.Fatalf("got error %v, want %v", err, fixtures.ErrHalfway)
	}
	if got := f.get(r); !got.Status.Final() {
		t.Errorf("the run is %s", got.Status)
	}
	tb.Dies.Store(false)
	f.must(runs.Delete(t.Context(), r.Ref))
	for _, item := range f.items() {
		if strings.HasPrefix(item.Key.SK, "EV#") || item.Key == r.Key() {
			t.Errorf("item %v is left", item.Key)
		}
	}
}

// TestABatchInThePlaceOfAVoidOneStays deletes a run whose worker died after it had stored a void
// batch. The worker of the next run replaces that batch right before it is erased.
func TestABatchInThePlaceOfAVoidOneStays(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("hi")
	var next run.Run
	f.loseBetween(a, 3, true, func() { next = f.create("next", run.Interrupt) })
	f.messages() // this seals the run
	b := f.claim(next)
	f.flush(b)
	show(b, "n", "before")
	f.flush(b)
	if f.voids() != 1 {
		t.Fatalf("got %d void batches, want 1", f.voids())
	}
	place := f.get(r).Position + 4
	stored := func() []byte {
		item, err := f.table.Get(t.Context(), keys.Event(f.ref.Workspace, f.ref.Deployment, f.ref.Thread, place))
		f.must(err)
		return item.Body
	}
	if !strings.Contains(string(stored()), "void") {
		t.Fatalf("the void batch is not at position %d", place)
	}
	f.table.beforeNext(func() {
		show(b, "n", "seen")
		f.flush(b)
	})
	f.must(f.runs.Delete(t.Context(), r.Ref))
	if got := f.get(next).Position; got != place || f.voids() != 0 {
		t.Fatalf("the next run is at position %d with %d void batches, want %d and none", got, f.voids(), place)
	}
	if got := stored(); !strings.Contains(string(got), "seen") {
		t.Errorf("the next run's batch is %s", got)
	}
	f.finish(b)
}
