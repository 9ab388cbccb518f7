package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// A rollback, and a cancel with the action rollback, remove runs: the lock names the removed range
// (Lock.RemoveFrom), and Seal erases the items of the range in batches.

// removeBatch is how many runs one transaction erases, with their requests. eraseBatch is how
// many items that a run wrote one transaction erases.
const (
	removeBatch = 40
	eraseBatch  = 90
)

// originalKey returns the key of the copy of a checkpoint as it was before a run changed the
// results of its tasks.
func originalKey(ref Ref) table.Key {
	return keys.OriginalCheckpoint(ref.Workspace, ref.Deployment, ref.Thread, ref.Run)
}

// remove returns the writes that erase one batch of the runs that are being removed from a
// thread. They first erase everything that the removed active run has written, then the runs.
// No other process writes on the thread meanwhile, because no run gets its turn before the
// removal is complete. A process that erases late loses the race for the lock, which has
// changed since.
func (s *Store) remove(ctx context.Context, t thread.Thread) (o record.Outbox, err error) {
	query := keys.RunsBetween(t.Workspace, t.Deployment, t.Thread, t.Lock.RemoveFrom, t.Lock.RemoveTo)
	query.Limit = removeBatch
	page, err := s.Table.Query(ctx, query)
	if err != nil {
		return o, fmt.Errorf("query runs to remove: %w", err)
	}
	change, first := t.ChangeLock(s.Now()), t.Lock.RemoveTo
	for _, item := range page.Items {
		run, err := decodeOn(t.Ref, item, t.Lock)
		if err != nil {
			return o, err
		}
		first = run.Run
		if run.Status != Removed {
			continue // the run had ended before
		}
		if run.Attempt > 0 {
			erase, size, err := s.eraseWrites(ctx, run)
			if err != nil {
				return o, err
			}
			if len(erase) > 0 {
				o = record.Write(append(erase, t.CheckLock())...)
				o.Then(func(ctx context.Context) { s.Threads.GiveBack(ctx, t, size) })
				return o, nil
			}
			// Positions are never reused: readers may have seen them.
			t.MarkPosition(&change, max(t.Lock.Position, run.Position))
			if err := s.loadBulk(ctx, &run); err != nil {
				return o, err
			}
			o.Join(s.notifyEnd(run, state.Values{}, s.Now()))
		} else {
			o.Join(s.notifyObserver(run))
		}
		o.Add(s.deletes(run, table.Cond{})...)
		o.Join(s.releasePermit(run))
	}
	if page.Cursor == "" {
		t.MarkRemoved(&change, "", "")
	} else {
		t.MarkRemoved(&change, first, t.Lock.RemoveTo)
	}
	o.Add(change)
	return o, nil
}

// deletes returns the writes that delete a run with its request. The thread of a temporary run is
// deleted with the run, so that it does not stay for ever without it.
func (s *Store) deletes(run Run, onlyIf table.Cond) []table.Write {
	writes := []table.Write{table.Delete{Key: run.Key(), If: onlyIf}, table.Delete{Key: keys.RunRequest(run.Workspace, run.Deployment, run.Thread, run.Run)}}
	if run.Temporary {
		writes = append(writes, s.Threads.DeleteUnused(run.Ref.Ref, linger))
	}
	return writes
}

// eraseWrites returns the writes that erase the next part of the items that a run has written, no
// writes if nothing is left. size is how many bytes this part has, as far as it is known.
func (s *Store) eraseWrites(ctx context.Context, run Run) (writes []table.Write, size int, err error) {
	written, err := s.Threads.CheckpointKeysAfter(ctx, run.Ref.Ref, run.CheckpointBefore, eraseBatch)
	if err == nil && len(written) == 0 && run.AgentCheckpoint >= 0 {
		written, err = s.Threads.FrameKeysAfter(ctx, run.Ref.Ref, run.AgentCheckpoint, run.AgentItems, eraseBatch)
	}
	if err != nil {
		return nil, 0, err
	}
	if len(written) == 0 && run.Position > run.Start {
		query := run.eventItems()
		query.Limit = eraseBatch
		page, err := s.Table.Query(table.WithoutContents(ctx), query)
		if err != nil {
			return nil, 0, fmt.Errorf("query events to erase: %w", err)
		}
		for _, item := range page.Items {
			written = append(written, item.Key)
			size += quota.Size(item)
		}
	}
	if len(written) == 0 && run.CheckpointRewritten {
		writes, err = s.Threads.RestoreOriginal(ctx, run.Ref.Ref, originalKey(run.Ref))
		return writes, 0, err
	}
	return table.Deletes(written), size, nil
}

// linger is how long the thread of a temporary run can be read after it has ended.
const linger = 2 * time.Minute

// cleanUp cleans up after a run that has ended, if no other process has done so: it seals the
// run's thread, or erases the thread if it was created for the run.
func (s *Store) cleanUp(ctx context.Context, t thread.Thread, run Run) error {
	t, err := s.Seal(ctx, t.Ref)
	if err != nil {
		return err
	}
	if run.Status == Removed {
		return nil // Seal has erased the run
	}
	if run.Temporary {
		// Other runs may have used the thread since.
		if t.Lock.Busy || later(run.Updated, t.Updated).Add(linger).After(s.Now()) {
			return nil
		}
		if err := s.Threads.DeleteAsRead(ctx, t); !fault.Is(err, fault.Conflict) {
			return err
		}
		return nil
	}
	_, err = record.Try(ctx, s.Table, table.Update{Key: run.Key(), Index: noLease()})
	return err
}

// Delete removes a run that has ended, with its events. The changes that the run made to the
// state stay. If the run was cancelled while it waited, its input, which would be kept when
// its turn came, is deleted with it. A run that has not ended is a fault.Conflict.
func (s *Store) Delete(ctx context.Context, ref Ref) error {
	run, err := s.getWithoutBulk(ctx, ref)
	if err != nil {
		return missing(ref, err)
	}
	if !run.Status.Final() {
		return fault.New(fault.Conflict, "Run with ID %s has not ended. Cancel it first.", ref.Run)
	}
	// Seal seals only runs that had ended before: a run that is interrupted meanwhile would
	// take its input with it.
	t, err := s.Seal(ctx, ref.Ref)
	if err != nil {
		return missing(ref, err)
	}
	if run, err = s.getWithoutBulk(ctx, ref); err != nil {
		return missing(ref, err)
	}
	size := int(run.Bulk)
	if run.Position > run.Start {
		if err := s.eraseEvents(ctx, run, &size); err != nil {
			return fmt.Errorf("erase events: %w", err)
		}
	}
	// The run is deleted last, so that a deletion that was cut short can be repeated.
	o := record.Write(append(s.deletes(run, table.Equals(attrStatus, string(run.Status))), table.Delete{Key: originalKey(ref)})...)
	o.Then(func(ctx context.Context) { s.Threads.GiveBack(ctx, t, size) })
	if err = record.Commit(ctx, s.Table, o); errors.Is(err, record.ErrLost) {
		return notFound(ref) // another request deleted it
	}
	return err
}

// eraseEvents erases the events of a run that has ended, and adds up their size. Meanwhile the
// worker of a later run may put its batch in the place of a void batch. So a void batch is erased
// only if it is still the batch that was read.
func (s *Store) eraseEvents(ctx context.Context, run Run, size *int) error {
	sum := quota.Sum(size)
	var void []*table.Item
	err := table.Erase(ctx, s.Table, run.eventItems(), func(item *table.Item) bool {
		if !run.wrote(item) {
			return false
		}
		if run.shows(item) {
			return sum(item)
		}
		void = append(void, item)
		return false
	})
	if err != nil {
		return err
	}
	for _, item := range void {
		erased, err := record.Try(ctx, s.Table, deleteBatch(item.Key, item.Int(attrEventAttemptFirst)))
		if err != nil {
			return err
		}
		if erased {
			sum(item)
		}
	}
	return nil
}

// missing returns the error of a read of a run. The error names the run if the run's thread
// does not exist.
func missing(ref Ref, err error) error {
	if fault.Is(err, fault.NotFound) {
		return notFound(ref)
	}
	return err
}
