package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// TestAReaderOfNewEventsGetsNoOldOnes reads from now on while a superseded run is not sealed.
func TestAReaderOfNewEventsGetsNoOldOnes(t *testing.T) {
	t.Parallel()
	for name, supersede := range map[string]run.Strategy{"interrupted": run.Interrupt, "rolled back": run.Rollback} {
		f := newFixture(t)
		_, a := f.started("1")
		show(a, "m", "shown")
		f.flush(a)
		second := f.create("2", supersede)
		now, err := f.runs.NewestPosition(t.Context(), f.ref)
		f.must(err)
		b := f.claim(second)
		show(b, "n", "new")
		f.flush(b)
		ctx, leave := context.WithCancel(t.Context())
		err = f.runs.Follow(ctx, f.ref, now, func(part run.Part) error {
			leave()
			if part.Run.Run != second.Run || part.Events[0].Name != run.EventMetadata {
				t.Errorf("%s: the reader gets %s of run %s, want the beginning of %s", name, names(part.Events), part.Run.Run, second.Run)
			}
			return context.Canceled
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnUpdateComesBeforeTheRunThatBeginsAfterIt makes an update and begins a run while a reader
// that has already read the thread looks for the thread's next run. A reader that goes on after an
// event of the run takes all updates before the run for read.
func TestAnUpdateComesBeforeTheRunThatBeginsAfterIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.table.beforeQuery(func() {
		e, err := f.threads.Edit(t.Context(), f.thread(), thread.Newest)
		f.must(err)
		f.must(e.Fold("agent", []graph.StateUpdate{{Values: json.RawMessage(`{"n":1}`), AsNode: "n"}}))
		f.must(e.Commit(t.Context()))
		_, a := f.started("1")
		show(a, "m", "shown")
		f.flush(a)
	})
	err := f.runs.FollowEdits(t.Context(), f.ref, run.ReaderPosition{}, new(int64(-1)), func(part run.Part) error {
		if part.Edit == nil {
			t.Errorf("the reader gets %s first, want the update", names(part.Events))
		}
		return context.Canceled
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
