package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
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

// forward is a table that notes where queries in ascending order begin.
type forward struct {
	table.Table
	from []string
}

func (r *forward) Query(ctx context.Context, query table.Query) (table.Page, error) {
	if !query.Reverse {
		r.from = append(r.from, query.From)
	}
	return r.Table.Query(ctx, query)
}

// TestAReaderOfUpdatesSkipsTheCheckpointsOfRuns reads a run to its end and then an update. The
// reader does not look for updates among the checkpoints of the run.
func TestAReaderOfUpdatesSkipsTheCheckpointsOfRuns(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("1")
	f.answer(a, "m", "one")
	f.answer(a, "n", "two")
	f.finish(a)
	e, err := f.threads.Edit(t.Context(), f.thread(), thread.Newest)
	f.must(err)
	f.must(e.Fold("agent", []graph.StateUpdate{{Values: json.RawMessage(`{"n":1}`), AsNode: "n"}}))
	f.must(e.Commit(t.Context()))
	seen := &forward{Table: f.table.Table}
	f.table.Table = seen
	err = f.runs.FollowEdits(t.Context(), f.ref, run.ReaderPosition{}, new(int64(-1)), func(part run.Part) error {
		if part.Edit == nil {
			return nil
		}
		return context.Canceled
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	first := func(after int64) string {
		return keys.CheckpointsAfter(f.ref.Workspace, f.ref.Deployment, f.ref.Thread, after).From
	}
	if before := f.get(r); before.CheckpointBefore == before.Checkpoint || slices.Contains(seen.from, first(before.CheckpointBefore)) || !slices.Contains(seen.from, first(before.Checkpoint)) {
		t.Errorf("the reader looks for updates from %q on", seen.from)
	}
}
