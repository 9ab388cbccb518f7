package thread

import (
	"context"
	"errors"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// graveKind is the kind of the item that replaces a thread while its partition is erased. For
// all requests the thread is gone: no run can be created, because the lock is gone. The worker
// at the thread's run writes nothing more, because the run is gone, too.
const graveKind = "thread-grave"

// erasure is how long an erasure may take before a timer goes on with it.
const erasure = time.Minute

// Delete removes a thread with everything that belongs to it. This also cancels a run in
// flight. If Delete does not complete, Sweep goes on with it.
func (s *Store) Delete(ctx context.Context, ref Ref) error {
	err := record.Decide(ctx, s.table, func(ctx context.Context) (record.Outbox, error) {
		t, err := s.Get(ctx, ref)
		if err != nil {
			return record.Outbox{}, err
		}
		return s.burial(t), nil
	})
	if err != nil {
		return err
	}
	return s.erasePartition(ctx, ref.Key())
}

// DeleteAsRead is Delete for a thread that was read. If the thread has changed since,
// DeleteAsRead returns a fault.Conflict and the thread stays.
func (s *Store) DeleteAsRead(ctx context.Context, t Thread) error {
	if err := s.commitAsRead(ctx, t.Ref, s.burial(t)); err != nil {
		return err
	}
	return s.erasePartition(ctx, t.Key())
}

// DeleteCreated removes a thread that the caller has created, unless another request has used it
// since.
func (s *Store) DeleteCreated(ctx context.Context, created Thread) error {
	t, err := s.Get(ctx, created.Ref) // with the bytes that were counted since
	if err == nil && t.Lock.Epoch == created.Lock.Epoch {
		err = s.DeleteAsRead(ctx, t)
	}
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) {
		return nil
	}
	return err
}

// commitAsRead applies an outbox. It returns a fault.Conflict if the thread was changed since
// it was read.
func (s *Store) commitAsRead(ctx context.Context, ref Ref, o record.Outbox) error {
	err := record.Commit(ctx, s.table, o)
	if errors.Is(err, record.ErrLost) {
		return changedMeanwhile(ref)
	}
	return err
}

func changedMeanwhile(ref Ref) error {
	return fault.New(fault.Conflict, "Thread %s has changed meanwhile. Try again.", ref.Thread)
}

// burial returns the writes that put a tombstone in the place of a thread that was read.
func (s *Store) burial(t Thread) record.Outbox {
	now := s.now()
	grave := record.Item(t.Key(), graveKind, now, nil, nil)
	grave.Index = map[table.Index]table.Key{table.ByList: keys.ThreadListEntry(t.Workspace, t.Deployment, t.Thread, t.Created)}
	writes := []table.Write{
		table.Put{Item: grave, If: table.All(t.unchanged(), t.countedAsRead())}, s.putTTL(t.Ref, TTL{Strategy: StrategyDelete}, now, now.Add(erasure)),
	}
	if t.Lock.Busy { // the erasure could miss writes that the run's worker makes from now on
		writes = append(writes, table.Delete{Key: keys.Run(t.Workspace, t.Deployment, t.Thread, t.Lock.Run)})
	}
	return record.Write(append(writes, t.uncountAll()...)...)
}

// countedAsRead is the condition that the counted bytes of the thread are still the number
// that was read, which is given back.
func (t Thread) countedAsRead() table.Cond {
	if t.Stored == 0 {
		return table.Below(attrStored, 1)
	}
	return table.Equals(attrStored, t.Stored)
}

// Patch is a change of a thread; nil members stay unchanged. Metadata is an object whose
// members are set.
type Patch struct {
	Metadata []byte
	TTL      *TTL
}

// Patch changes a thread.
func (s *Store) Patch(ctx context.Context, ref Ref, patch Patch) (Thread, error) {
	return record.DecideValue(ctx, s.table, func(ctx context.Context) (Thread, record.Outbox, error) {
		var o record.Outbox
		t, err := s.Get(ctx, ref)
		if err == nil {
			err = t.Usable()
		}
		if err != nil {
			return t, o, err
		}
		now := s.now()
		change := t.ChangeLock(now) // the body changes under the lock's epoch
		if patch.Metadata != nil {
			if t.Metadata, err = record.Merge(t.Metadata, patch.Metadata); err == nil {
				err = checkMetadata(t.Metadata)
			}
			if err != nil {
				return t, o, err
			}
			if err := s.CheckRoom(ctx, ref.Workspace, len(t.Metadata)); err != nil {
				return t, o, err
			}
			change.Body = t.encodeBody()
		}
		o.Add(change)
		if patch.TTL != nil {
			o.Add(s.putTTL(ref, *patch.TTL, now, now.Add(patch.TTL.Duration())))
		}
		t.Updated = now
		t.Lock.Epoch++
		return t, o, nil
	})
}
