package run

import (
	"context"
	"slices"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// A void batch of events is a batch that a worker stored when it had lost the run: the worker could
// not move the run's position to it. No reader sees it. The next worker uses its positions again,
// from its own first event on. Each batch names the position of the first event of its attempt
// (attemptFirst). The attempt has committed this event, so the position is different for each
// attempt of the thread, and higher for a later attempt.

// isVoid reports whether a batch up to the position last is void. The batch is of this run, or of
// a run before it. An attemptFirst of 0 is from a version without void batches.
func (r *Run) isVoid(attemptFirst, last int64) bool {
	if attemptFirst == 0 {
		return false
	}
	return attemptFirst <= r.Start || last > r.Position ||
		slices.ContainsFunc(r.FirstsAfterLoss, func(next int64) bool { return attemptFirst < next && next <= last })
}

// eraseVoid erases the batch that ends at a position, after a write in order that was fenced off.
// It keeps a batch that was committed before, if only the answer was lost. If it fails, or if the
// worker dies first, the batch is erased with its run.
func (a *Attempt) eraseVoid(ctx context.Context, last int64) {
	run, err := a.store.getWithoutBulk(ctx, a.Run.Ref)
	switch {
	case fault.Is(err, fault.NotFound):
		err = nil
	case err == nil && !run.isVoid(a.attemptFirst, last):
		return
	}
	if err == nil {
		key := keys.Event(a.Run.Workspace, a.Run.Deployment, a.Run.Thread, last)
		_, err = record.Try(ctx, a.store.Table, deleteBatch(key, a.attemptFirst))
	}
	if err != nil {
		a.store.Log.WarnContext(ctx, "a void batch of events was not erased", "run", a.Run.Run, "error", err)
	}
}

// deleteBatch returns the write that erases the batch of an attempt, which attemptFirst names.
func deleteBatch(key table.Key, attemptFirst int64) table.Write {
	return table.Delete{Key: key, If: table.Equals(attrEventAttemptFirst, attemptFirst)}
}

// eventItems asks for the items of the run's events: its batches, and void batches that its
// workers may have left behind its last position.
func (r *Run) eventItems() table.Query {
	return keys.Events(r.Workspace, r.Deployment, r.Thread, r.Start, r.Position+mostEvents)
}

// wrote reports whether an item of eventItems is of this run. The other items are of the next runs.
func (r *Run) wrote(item *table.Item) bool {
	attemptFirst := item.Int(attrEventAttemptFirst)
	return r.shows(item) || (attemptFirst > 0 && attemptFirst <= r.Position)
}

// shows reports whether an item of eventItems is at a position up to the run's last position. No
// other run writes there.
func (r *Run) shows(item *table.Item) bool {
	return item.Key.SK <= keys.Event(r.Workspace, r.Deployment, r.Thread, r.Position).SK
}
