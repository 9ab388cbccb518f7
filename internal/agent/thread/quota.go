package thread

import (
	"context"

	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// place is the wish of a new thread to be counted.
func (s *Store) place(ref Ref) *quota.Place {
	return s.pool.Place(ref.Workspace, ref.Thread, quota.Threads, 0)
}

// RunPlace is the wish of a thread to have a run in flight.
func (s *Store) RunPlace(t Thread) *quota.Place {
	return s.pool.Place(t.Workspace, t.Thread, quota.Runs, t.Part)
}

// Count makes a change that occupies a thread nobody occupied one that counts its run. A thread
// that an older version has made is counted with it; one of a temporary run is not.
func (t Thread) Count(ctx context.Context, o *record.Outbox, change *table.Update, place *quota.Place, temporary bool) error {
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

// Uncount returns the write that gives back the place of a thread's run, which has ended with
// nobody behind it.
func (t Thread) Uncount() []table.Write {
	freed := quota.Freed{}
	freed.Add(t.RunPart, quota.Runs)
	return freed.Writes(t.Workspace)
}

// uncountAll returns the writes that give back the places of a thread that is deleted.
func (t Thread) uncountAll() []table.Write {
	freed := quota.Freed{}
	freed.Add(t.Part, quota.Threads)
	if t.Lock.Busy {
		freed.Add(t.RunPart, quota.Runs)
	}
	freed.AddStored(t.Stored)
	return freed.Writes(t.Workspace)
}
