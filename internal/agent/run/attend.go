package run

import (
	"context"
	"fmt"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Attendance is a reader of a thread, with the place at which it begins.
type Attendance struct {
	follower follower
}

// Attend is for a reader that may come before the thread exists, and that also gets the ends of
// runs that never began. It fixes the place at which the reader begins. If from is nil, this is the
// active run, or the newest run of an idle thread; all runs of a thread that does not exist yet
// come later.
func (s *Store) Attend(ctx context.Context, ref thread.Ref, from *ReaderPosition) (*Attendance, error) {
	a := &Attendance{follower{store: s, ref: ref, shows: true}}
	t, err := s.Threads.Get(ctx, ref)
	switch {
	case fault.Is(err, fault.NotFound):
		return a, nil
	case err != nil:
		return nil, err
	case from != nil:
		err = a.follower.find(ctx, t.Lock, *from)
	default:
		err = a.follower.beginAt(ctx, t.Lock)
	}
	a.follower.threadCreated = t.Created
	return a, err
}

// Follow is Store.Follow from the reader's place. It returns nil when the thread is deleted: a new
// thread with the same id has another log.
func (a *Attendance) Follow(ctx context.Context, emit func(Part) error) error {
	f := a.follower
	f.emit = emit
	w := f.store.Table.Watch(f.ref.Key())
	defer w.Stop()
	if f.threadCreated.IsZero() {
		if err := f.waitForThread(ctx, w); err != nil {
			return err
		}
	}
	return f.all(ctx, w)
}

// waitForThread returns as soon as the thread exists.
func (f *follower) waitForThread(ctx context.Context, w table.Watcher) error {
	for {
		_, err := f.store.Threads.Get(ctx, f.ref)
		if !fault.Is(err, fault.NotFound) {
			return err
		}
		if err := table.Await(ctx, nil, w.C(), nil); err != nil {
			return err
		}
	}
}

// beginAt begins with the run that the lock names; this run need not exist any more. If the
// lock names no run, the thread had no run when the lock was read, so all its runs are still
// to be shown.
func (f *follower) beginAt(ctx context.Context, lock thread.Lock) error {
	if lock.Run == "" {
		return nil
	}
	return f.back(ctx, lock, lock.Run, func(before Run) bool {
		if before.Status == Removed {
			return true
		}
		if f.done == "" {
			f.done = before.Run
		}
		if before.Attempt > 0 {
			f.position = before.Position
			return false
		}
		f.early++
		return true
	})
}

// back visits the runs before a run, from the newest to the oldest, until visit returns false.
// If run is "", back visits all runs.
func (f *follower) back(ctx context.Context, lock thread.Lock, run string, visit func(Run) bool) error {
	query := keys.Runs(f.ref.Workspace, f.ref.Deployment, f.ref.Thread)
	query.Reverse, query.Limit = true, followPage
	for item, err := range table.Items(ctx, f.store.Table, query) {
		if err != nil {
			return fmt.Errorf("query runs: %w", err)
		}
		before, err := decodeOn(f.ref, item, lock)
		if err != nil {
			return err
		}
		if (run == "" || before.Run < run) && !visit(before) {
			break
		}
	}
	return nil
}

// Behind returns the reader's position before the first event of a run, as far as this
// position is known. The position is behind the newest event of the earlier runs that a worker
// claimed, and behind the ends of the later runs that never began. If run is "", Behind
// returns the position behind everything that the thread has shown.
func (s *Store) Behind(ctx context.Context, ref thread.Ref, run string) (ReaderPosition, error) {
	t, err := s.Threads.Get(ctx, ref)
	if err != nil {
		return ReaderPosition{}, err
	}
	f, position := follower{store: s, ref: ref}, ReaderPosition{}
	err = f.back(ctx, t.Lock, run, func(before Run) bool {
		switch {
		case before.Status == Removed:
			return true
		case before.Attempt > 0 && before.Status.Final():
			position.Position, position.Ended = before.Position, true
		case before.Attempt > 0:
			// The runs that are queued behind it end after it.
			position = ReaderPosition{Position: before.Position}
		case before.Status.Final():
			position.Early++
		}
		return before.Attempt == 0
	})
	return position, err
}

// Reached returns the position of the newest event that the thread has shown, even if the run
// of this event was removed. Reached reads the thread last: a run that is removed meanwhile
// leaves its position in the thread.
func (s *Store) Reached(ctx context.Context, ref thread.Ref) (reached int64, err error) {
	f := follower{store: s, ref: ref}
	err = f.back(ctx, thread.Lock{}, "", func(run Run) bool {
		reached = max(reached, run.Position)
		return run.Attempt == 0
	})
	if err != nil {
		return 0, err
	}
	t, err := s.Threads.Get(ctx, ref)
	return max(reached, t.Lock.Position), err
}
