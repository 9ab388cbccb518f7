package thread

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// graveKind is that of the item that stands in the place of a thread while its partition is erased. To everybody the thread is gone: no run can be created, as
// the lock is gone, and the worker at its run writes nothing more, as that is gone too.
const graveKind = "thread-grave"

// burial is how long an erasure may take before a timer goes on with it.
const burial = time.Minute

// contention is how often a change is tried again because another one came first.
const contention = 100

// Delete removes a thread with everything that belongs to it; a run in flight is cancelled by that. When it does not come to its end, Sweep goes on with it.
func (s *Store) Delete(ctx context.Context, ref Ref) error {
	for range contention {
		t, err := s.Get(ctx, ref)
		if err != nil {
			return err
		}
		if err = s.DeleteAsRead(ctx, t); !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return fault.New(fault.Unavailable, "Thread %s is changed by too many requests at once.", ref.Thread)
}

// DeleteAsRead is Delete of a thread that was read. One that has changed since is a fault.Conflict, and stays.
func (s *Store) DeleteAsRead(ctx context.Context, t Thread) error {
	now := s.now()
	grave := table.Item{
		Key: t.Key(), Attrs: record.Attrs(graveKind, now, nil),
		Index: map[table.Index]table.Key{table.ByList: keys.ThreadListEntry(t.Workspace, t.Deployment, t.Thread, t.Created)},
	}
	writes := []table.Write{
		table.Put{Item: grave, If: table.Equals(AttrEpoch, t.Lock.Epoch)}, s.putTTL(t.Ref, TTL{Strategy: StrategyDelete}, now, now.Add(burial)),
	}
	if t.Lock.Busy { // what its worker wrote from now on could be missed by the erasure
		writes = append(writes, table.Delete{Key: keys.Run(t.Workspace, t.Deployment, t.Thread, t.Lock.Run)})
	}
	err := s.table.Transact(ctx, writes...)
	if _, ok := errors.AsType[*table.ConditionFailed](err); ok {
		return changedFault(t.Ref)
	}
	if err != nil {
		return fmt.Errorf("delete thread: %w", err)
	}
	return s.erasePartition(ctx, t.Key())
}

// changedFault is the fault of a request that a change of the thread has overtaken.
func changedFault(ref Ref) error {
	return fault.New(fault.Conflict, "Thread %s has changed meanwhile. Try again.", ref.Thread)
}

// Patch is a change of a thread; what is nil stays as it is. Metadata is an object whose members are set.
type Patch struct {
	Metadata []byte
	TTL      *TTL
}

// Patch changes a thread.
func (s *Store) Patch(ctx context.Context, ref Ref, patch Patch) (Thread, error) {
	for range contention {
		t, err := s.Get(ctx, ref)
		if err != nil {
			return Thread{}, err
		}
		now := s.now()
		var writes []table.Write
		change := t.ChangeLock(now, nil) // the body changes under the lock's epoch
		if patch.Metadata != nil {
			if t.Metadata, err = record.Merge(t.Metadata, patch.Metadata); err == nil {
				err = checkMetadata(t.Metadata)
			}
			if err != nil {
				return Thread{}, err
			}
			change.Body = t.encoded()
		}
		writes = append(writes, change)
		if patch.TTL != nil {
			writes = append(writes, s.putTTL(ref, *patch.TTL, now, now.Add(patch.TTL.Duration())))
		}
		err = s.table.Transact(ctx, writes...)
		if _, ok := errors.AsType[*table.ConditionFailed](err); ok {
			continue
		}
		if err != nil {
			return Thread{}, fmt.Errorf("change thread: %w", err)
		}
		t.Updated = now
		t.Lock.Epoch++
		return t, nil
	}
	return Thread{}, fault.New(fault.Unavailable, "Thread %s is changed by too many requests at once.", ref.Thread)
}
