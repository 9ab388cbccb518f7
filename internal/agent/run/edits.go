package run

import (
	"context"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// FollowEdits is Follow for a reader that also gets the states that clients make by updates: those
// after the checkpoint with the number known. They come between the runs, where they were made. If
// known is nil, they are the updates after the run in which the position lies.
func (s *Store) FollowEdits(ctx context.Context, ref thread.Ref, from ReaderPosition, known *int64, emit func(Part) error) error {
	f := follower{store: s, ref: ref, emit: emit}
	w := s.Table.Watch(ref.Key())
	defer w.Stop()
	if gone, err := f.seek(ctx, from); gone || err != nil {
		return err
	}
	f.edits = &edits{follower: &f, known: -1}
	if known != nil {
		f.edits.known = *known
	} else if err := f.edits.begin(ctx, from); err != nil {
		return err
	}
	return f.all(ctx, w)
}

// edits hands over the states that clients have made.
type edits struct {
	*follower
	// known is the number of a checkpoint: the reader has all earlier edits.
	known int64
}

// begin skips the edits before the end of the run in which the position lies.
func (e *edits) begin(ctx context.Context, from ReaderPosition) error {
	if from.Position == 0 {
		return nil
	}
	t, err := e.store.Threads.Get(ctx, e.ref)
	if fault.Is(err, fault.NotFound) {
		return nil // the follower notices it
	}
	if err != nil {
		return err
	}
	return e.back(ctx, t.Lock, "", func(run Run) bool {
		switch {
		case run.Run == e.done && !from.Ended:
			return false
		case run.Attempt > 0 && run.Status != Removed && (run.Run == e.done || !from.Ended):
			e.known = run.CheckpointBefore
		}
		return run.Run > e.done
	})
}

// pass skips the checkpoints of a run that the reader has read to its end: no client makes an
// update during a run.
func (e *edits) pass(run Run) {
	if e != nil {
		e.known = max(e.known, run.Checkpoint)
	}
}

// upTo hands over the edits before the next run, or all new edits if there is no next run. The next
// run may be newer than the lock, and begin after edits that the lock does not know. The lock's
// checkpoint never goes back: a rollback removes only checkpoints behind it.
func (e *edits) upTo(ctx context.Context, lock thread.Lock, next *Run) error {
	newest := lock.Checkpoint
	if next != nil && next.Attempt > 0 {
		newest = next.CheckpointBefore
	}
	if newest <= e.known {
		return nil
	}
	err := e.store.Threads.Edited(ctx, e.ref, e.known, newest, func(st thread.State) error {
		return e.emit(Part{Edit: &st, Position: e.position})
	})
	e.known = newest
	return err
}
