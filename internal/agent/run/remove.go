package run

import (
	"context"
	"fmt"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// removeBatch is how many runs are erased in one transaction, with their requests; eraseBatch how
// many items of what a run wrote.
const (
	removeBatch = 40
	eraseBatch  = 90
)

// amended is where a checkpoint is kept as it was before a run changed what is said of its tasks.
func amended(ref Ref) table.Key {
	return keys.AmendedCheckpoint(ref.Workspace, ref.Deployment, ref.Thread, ref.Run)
}

// remove returns what erases a batch of what is being removed from a thread: first what the run
// that was active has written, then the runs. Nothing else writes on the thread meanwhile, as no
// run gets its turn before. A late eraser loses the race for the lock, which has moved on.
func (s *Store) remove(ctx context.Context, t thread.Thread) (o record.Outbox, err error) {
	query := keys.RunsBetween(t.Workspace, t.Deployment, t.Thread, t.Lock.Cut, t.Lock.CutTo)
	query.Limit = removeBatch
	page, err := s.table.Query(ctx, query)
	if err != nil {
		return o, fmt.Errorf("query runs to remove: %w", err)
	}
	change, rest := t.ChangeLock(s.now()), t.Lock.CutTo
	for _, item := range page.Items {
		run, err := decodeOn(t.Ref, item, t.Lock)
		if err != nil {
			return o, err
		}
		rest = run.Run
		if run.Status != Removed {
			continue // it had ended before
		}
		if run.Attempt > 0 {
			erase, size, err := s.written(ctx, run)
			if err != nil {
				return o, err
			}
			if len(erase) > 0 {
				o = record.Write(append(erase, t.CheckLock())...)
				o.Then(func(ctx context.Context) { s.threads.GiveBack(ctx, t, size) })
				return o, nil
			}
			t.MarkPosition(&change, max(t.Lock.Position, run.Position)) // no position is used twice: readers may have seen it
		}
		o.Add(table.Delete{Key: run.Key()}, table.Delete{Key: keys.RunRequest(run.Workspace, run.Deployment, run.Thread, run.Run)})
		o.Join(s.releasePermit(run))
	}
	if page.Cursor == "" {
		t.CutRuns(&change, "", "")
	} else {
		t.CutRuns(&change, rest, t.Lock.CutTo)
	}
	o.Add(change)
	return o, nil
}

// written returns the writes that erase the next part of what a run has written, none when nothing
// is left, and how much that is as far as it is known.
func (s *Store) written(ctx context.Context, run Run) (writes []table.Write, size int, err error) {
	found, err := s.threads.CheckpointKeysAfter(ctx, run.Ref.Ref, run.Before, eraseBatch)
	if err == nil && len(found) == 0 && run.AgentCheckpoint >= 0 {
		found, err = s.threads.FrameKeysAfter(ctx, run.Ref.Ref, run.AgentCheckpoint, run.AgentItems, eraseBatch)
	}
	if err != nil {
		return nil, 0, err
	}
	if len(found) == 0 && run.Position > run.Start {
		query := keys.Events(run.Workspace, run.Deployment, run.Thread, run.Start, run.Position)
		query.Limit = eraseBatch
		page, err := s.table.Query(ctx, query)
		if err != nil {
			return nil, 0, fmt.Errorf("query events to erase: %w", err)
		}
		for _, item := range page.Items {
			found = append(found, item.Key)
			size += quota.Size(item)
		}
	}
	writes = make([]table.Write, 0, len(found)+1)
	for _, key := range found {
		writes = append(writes, table.Delete{Key: key})
	}
	if len(writes) == 0 && run.Amended {
		writes, err = s.threads.RestoreOriginal(ctx, run.Ref.Ref, amended(run.Ref))
	}
	return writes, size, err
}

// clear sees to what a run that has ended leaves behind, when nobody has done that: it seals its
// thread, or erases it if it was made for the run.
func (s *Store) clear(ctx context.Context, t thread.Thread, run Run) error {
	t, err := s.Seal(ctx, t.Ref)
	if err != nil {
		return err
	}
	if run.Status == Removed {
		return nil // and gone
	}
	if run.Temporary {
		// Others may have used the thread since.
		if t.Lock.Busy || later(run.Updated, t.Updated).Add(s.linger).After(s.now()) {
			return nil
		}
		if err := s.threads.DeleteAsRead(ctx, t); !fault.Is(err, fault.Conflict) {
			return err
		}
		return nil
	}
	_, err = record.Try(ctx, s.table, table.Update{Key: run.Key(), Index: noLease()})
	return err
}

// Delete removes a run that has ended, with its events. What it did to the state stays; the input
// of one that was cancelled while it waited, which would be kept when its turn has come, goes with
// it. A run that has not ended is a fault.Conflict.
func (s *Store) Delete(ctx context.Context, ref Ref) error {
	run, err := s.getWithoutBulk(ctx, ref)
	if err != nil {
		return missing(ref, err)
	}
	if !run.Status.Final() {
		return fault.New(fault.Conflict, "Run with ID %s has not ended. Cancel it first.", ref.Run)
	}
	// Only a run that had ended before is sealed now: one that is interrupted meanwhile would take
	// its input with it.
	t, err := s.Seal(ctx, ref.Ref)
	if err != nil {
		return missing(ref, err)
	}
	if run, err = s.getWithoutBulk(ctx, ref); err != nil {
		return missing(ref, err)
	}
	size := int(run.Bulk)
	if run.Position > run.Start {
		err := table.Erase(ctx, s.table, keys.Events(run.Workspace, run.Deployment, run.Thread, run.Start, run.Position), quota.Sum(&size))
		if err != nil {
			return fmt.Errorf("erase events: %w", err)
		}
	}
	// The run goes last, so that a deletion that was cut short can be repeated.
	deleted, err := record.Try(ctx, s.table, table.Delete{Key: ref.Key(), If: table.Equals(attrStatus, string(run.Status))},
		table.Delete{Key: keys.RunRequest(run.Workspace, run.Deployment, run.Thread, run.Run)}, table.Delete{Key: amended(ref)})
	if err == nil && !deleted {
		return notFound(ref) // another request deleted it
	}
	if err == nil {
		s.threads.GiveBack(ctx, t, size)
	}
	return err
}

// missing returns the error of a look at a run, with words about the run where its thread is not
// there.
func missing(ref Ref, err error) error {
	if fault.Is(err, fault.NotFound) {
		return notFound(ref)
	}
	return err
}
