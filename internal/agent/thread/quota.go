package thread

import (
	"context"
	"time"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// reserveThread returns the request for a place in the quota of threads.
func (s *Store) reserveThread(ref Ref) *quota.Reservation {
	return s.pool.Reserve(ref.Workspace, ref.Thread, quota.Threads, 0)
}

// ReserveRun returns the request for a place in the quota of runs.
func (s *Store) ReserveRun(t Thread) *quota.Reservation {
	return s.pool.Reserve(t.Workspace, t.Thread, quota.Runs, t.Part)
}

// CountRun adds the new run to the workspace's quota. It also counts the thread if an older version
// created the thread without counting it. It does not count the thread of a temporary run.
func (t Thread) CountRun(ctx context.Context, o *record.Outbox, change *table.Update, place *quota.Reservation, temporary bool) error {
	var along []quota.Name
	if t.Part == 0 && !temporary {
		along = append(along, quota.Threads)
	}
	if err := place.Take(ctx, o, along...); err != nil {
		return err
	}
	change.Set[attrRunPart] = int64(place.Part())
	if len(along) > 0 {
		change.Set[attrPart] = int64(place.Part())
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

// counting is a table that counts the bytes that are written into threads for the quota of
// stored bytes. The counted bytes are noted in the thread's item. They are given back when the
// thread is deleted, and in part when its history is pruned or runs are removed. An item that
// is written again is counted again.
type counting struct {
	table.Table

	pool *quota.Pool
}

// Transact implements table.Table. Most writes of a run cost nothing extra: only a write for
// which bytes are to be counted, as quota.Pool.Draw decides, is followed by a second
// transaction.
func (c counting) Transact(ctx context.Context, writes ...table.Write) error {
	if err := c.Table.Transact(ctx, writes...); err != nil {
		return err //nolint:wrapcheck // the table's own
	}
	c.countWrites(ctx, writes)
	return nil
}

// InOrder implements table.Table, and counts as Transact does.
func (c counting) InOrder(ctx context.Context, writes ...table.Write) error {
	if err := c.Table.InOrder(ctx, writes...); err != nil {
		return err //nolint:wrapcheck // the table's own
	}
	c.countWrites(ctx, writes)
	return nil
}

// countWrites counts the items that were written.
func (c counting) countWrites(ctx context.Context, writes []table.Write) {
	sizes := map[Ref]int{}
	for _, write := range writes {
		if put, ok := write.(table.Put); ok {
			if parts, err := keys.ParseThread(put.Item.Key); err == nil {
				sizes[Ref(parts)] += quota.Size(&put.Item)
			}
		}
	}
	for ref, size := range sizes {
		count(ctx, c.pool, ref, c.pool.Draw(size))
	}
}

// count notes bytes in a thread and counts them.
func count(ctx context.Context, pool *quota.Pool, ref Ref, bytes int64) {
	note := table.Update{Key: ref.Key(), Add: map[string]int64{attrStored: bytes}, If: table.Equals(record.Kind, kind)}
	pool.CountStored(ctx, ref.Workspace, bytes, time.Time{}, note)
}

// Counting returns a table for other code that writes into threads.
func (s *Store) Counting(t table.Table) table.Table { return counting{t, s.pool} }

// CheckRoom returns an error if a workspace that wants to store size bytes has stored as much as it
// may.
func (s *Store) CheckRoom(ctx context.Context, workspace string, size int) error {
	return s.pool.Room(ctx, workspace, size)
}

// GiveBack subtracts the bytes that were erased of a thread from the counted bytes, but no
// more than were counted.
func (s *Store) GiveBack(ctx context.Context, t Thread, size int) {
	count(ctx, s.pool, t.Ref, -min(s.pool.Draw(size), t.Stored))
}
