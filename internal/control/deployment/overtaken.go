package deployment

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// skipped is how many revisions are written at a time: each with its event, and that with what it is sent by.
const skipped = 6

// Skip writes down that the revisions which the one in the slot has overtaken are SKIPPED. They read so since the slot was passed on; what this adds are their
// events. It may be repeated.
func (s *Store) Skip(ctx context.Context, ref Ref, slot string) error {
	for before := slot; before != ""; {
		var err error
		for range contention {
			var next string
			if next, err = s.skip(ctx, ref, slot, before); err == nil {
				before = next
			}
			if !errors.Is(err, ErrOvertaken) {
				break
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// skip writes the newest of those that are older than a revision, and returns the oldest of them, "" when no more are left.
func (s *Store) skip(ctx context.Context, ref Ref, slot, before string) (string, error) {
	d, err := s.Get(ctx, ref)
	if fault.Is(err, fault.NotFound) || err == nil && (d.Slot != slot || d.Status == AwaitingDelete) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	query := keys.Revisions(ref.Workspace, ref.Deployment)
	query.Reverse, query.Limit = true, skipped
	place := ref.Revision(before).Key()
	query.Cursor = query.CursorAfter(table.Place{Sort: place.SK, Key: place})
	page, err := s.table.Query(ctx, query)
	if err != nil {
		return "", fmt.Errorf("query revisions: %w", err)
	}
	var writes []table.Write
	oldest := ""
	for _, item := range page.Items {
		r, err := revision.Decode(ref.Revision(keys.RevisionID(item.Key)), item, "")
		if err != nil {
			return "", err
		}
		if r.HadSlot() {
			oldest = ""
			break
		}
		if oldest = r.Revision; r.Status == revision.Queued {
			writes = append(writes, r.Superseded(s.now()))
		}
	}
	if len(writes) > 0 {
		err = s.overtaken(s.transact(ctx, d, writes...))
	}
	return oldest, err
}
