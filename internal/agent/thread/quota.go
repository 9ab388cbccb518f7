package thread

import (
	"context"

	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// threadSlot returns the request for a slot of the thread quota.
func (s *Store) threadSlot(ref Ref) *quota.Place {
	return s.pool.Place(ref.Workspace, ref.Thread, quota.Threads, 0)
}

// RunSlot returns the request for a slot of the run quota.
func (s *Store) RunSlot(t Thread) *quota.Place {
	return s.pool.Place(t.Workspace, t.Thread, quota.Runs, t.Part)
}

// CountRun adds the new run to the workspace's quota. It also counts the thread if an older version
// created the thread without counting it. It does not count the thread of a temporary run.
func (t Thread) CountRun(ctx context.Context, o *record.Outbox, change *table.Update, slot *quota.Place, temporary bool) error {
	var along []quota.Name
	if t.Part == 0 && !temporary {
		along = append(along, quota.Threads)
	}
	if err := slot.Take(ctx, o, along...); err != nil {
		return err
	}
	change.Set[attrRunPart] = int64(slot.Part())
	if len(along) > 0 {
		change.Set[attrPart] = int64(slot.Part())
	}
	return nil
}

// UncountRun returns the writes that take the thread's last run off the workspace's quota. No run
// is queued behind that run.
func (t Thread) UncountRun() []table.Write {
	freed := quota.Freed{}
	freed.Add(t.RunPart, quota.Runs)
	return freed.Writes(t.Workspace)
}

// uncountAll returns the writes that take a deleted thread, and its run, off the workspace's quota.
func (t Thread) uncountAll() []table.Write {
	freed := quota.Freed{}
	freed.Add(t.Part, quota.Threads)
	if t.Lock.Busy {
		freed.Add(t.RunPart, quota.Runs)
	}
	freed.AddStored(t.Stored)
	return freed.Writes(t.Workspace)
}
