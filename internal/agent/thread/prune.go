package thread

import (
	"context"
	"fmt"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// Prune removes the history of a thread. It keeps the thread's newest state, with the data
// that an agent needs to go on from it. A thread whose run is in flight is a fault.Conflict.
// The leftovers of earlier runs must be in the state already.
//
// The oldest checkpoint that is kept becomes a snapshot under the lock's epoch, so that no run
// begins meanwhile. Only then the items before it are erased. The names are erased first, so
// that no request finds the place of a checkpoint that is being erased. The checkpoints are erased
// one after the other, the newest first: each checkpoint that is left still has all the others on
// which it builds, also if the process dies meanwhile.
func (s *Store) Prune(ctx context.Context, t Thread) error {
	if t.Lock.Busy || t.Lock.Unsealed {
		return BusyFault(t.Ref)
	}
	newest, err := s.StateAt(ctx, t.Ref, t.Lock.Checkpoint)
	if err != nil || newest.At.Number < 0 {
		return err
	}
	keep := newest.At.Number
	// The agent still has to make the updates since its own checkpoint.
	if at := newest.At; !at.Own() && (at.Agent != nil || !at.Folded) {
		keep = min(keep, max(at.First, 0))
	}
	oldest, err := s.StateAt(ctx, t.Ref, keep)
	if err != nil {
		return err
	}
	o := record.Write(t.ChangeLock(t.Updated))
	writes, replaced := oldest.asOldest(t.Ref)
	o.Add(writes...)
	if err := s.commitAsRead(ctx, t.Ref, o); err != nil {
		return err
	}
	size, err := s.forget(ctx, t.Ref, keep, newest.At.Agent)
	s.GiveBack(ctx, t, size+replaced)
	return err
}

// asOldest returns the write that makes a checkpoint a snapshot without a parent, and the size of
// the item that it replaces. It returns no write if the checkpoint is such a snapshot already, so
// that a thread that is pruned again and again does not store, and count, its state each time.
func (s State) asOldest(ref Ref) (writes []table.Write, replaced int) {
	if s.stored.Values != nil && s.At.ParentID == "" && s.stored.Results == nil {
		return nil, 0
	}
	before := s.item(ref)
	s.At.ParentID, s.base = "", s.At.Number
	s.stored.Patch, s.stored.Values, s.stored.Results = nil, s.Values.JSON(), nil
	return []table.Write{table.Put{Item: s.item(ref), If: table.Present()}}, quota.Size(&before)
}

// forget erases the items before a checkpoint, and before the agent's own checkpoint; agent
// is nil if the agent has no checkpoint. It returns how many bytes it has erased.
func (s *Store) forget(ctx context.Context, ref Ref, keep int64, agent *AgentCheckpoint) (size int, err error) {
	if err := table.Erase(ctx, s.table, keys.CheckpointNames(ref.Workspace, ref.Deployment, ref.Thread), func(item *table.Item) bool {
		return item.Int(attrNumber) < keep
	}); err != nil {
		return 0, err
	}
	var queries []table.Query
	if keep > 0 {
		queries = append(queries, keys.Checkpoints(ref.Workspace, ref.Deployment, ref.Thread, keep-1))
	}
	if agent != nil {
		earlier, err := s.framesBefore(ctx, ref, *agent)
		if err != nil {
			return 0, err
		}
		queries = append(queries, earlier...)
	}
	for _, query := range queries {
		if err := table.EraseInOrder(ctx, s.table, query, quota.Sum(&size)); err != nil {
			return size, err
		}
	}
	return size, nil
}

// framesBefore asks for the frames that no read of the agent's checkpoint needs.
func (s *Store) framesBefore(ctx context.Context, ref Ref, agent AgentCheckpoint) (queries []table.Query, err error) {
	add := func(key table.Key, upTo func(number int64) table.Query) error {
		frame, err := s.table.Get(ctx, key)
		if err != nil {
			return fmt.Errorf("get frame: %w", err)
		}
		if base := frame.Int(attrBase); base > 0 {
			queries = append(queries, upTo(base-1))
		}
		return nil
	}
	err = add(keys.Frame(ref.Workspace, ref.Deployment, ref.Thread, agent.Number), func(number int64) table.Query {
		return keys.Frames(ref.Workspace, ref.Deployment, ref.Thread, number)
	})
	if err != nil {
		return nil, err
	}
	for _, subgraph := range agent.Lasting {
		err := add(keys.KeptFrame(ref.Workspace, ref.Deployment, ref.Thread, subgraph.NS, subgraph.Number), func(number int64) table.Query {
			return keys.KeptFrames(ref.Workspace, ref.Deployment, ref.Thread, subgraph.NS, number)
		})
		if err != nil {
			return nil, err
		}
	}
	return append(queries, keys.FramesSinceBefore(ref.Workspace, ref.Deployment, ref.Thread, agent.Number)), nil
}
