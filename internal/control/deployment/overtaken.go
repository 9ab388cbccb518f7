package deployment

import (
	"context"
	"fmt"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// skipped is how many revisions are written at a time: each with its event, and with a delivery of
// the event to each webhook, which a workspace may have 20 of.
const skipped = (table.MaxWrites - 1) / (2 + 20)

// Skip writes that the revisions which the revision in the slot has overtaken are SKIPPED.
// Readers have seen this status since the slot was passed on; Skip adds their events. It may
// be repeated.
func (s *Store) Skip(ctx context.Context, ref Ref, slot string) (err error) {
	for before := slot; before != "" && err == nil; {
		before, err = record.DecideValue(ctx, s.table, func(ctx context.Context) (string, record.Outbox, error) {
			return s.skip(ctx, ref, slot, before)
		})
	}
	return err
}

// skip writes the newest revisions that are older than a given revision, and returns the
// oldest of them, "" when no more revisions are left.
func (s *Store) skip(ctx context.Context, ref Ref, slot, before string) (oldest string, o record.Outbox, err error) {
	d, err := s.Get(ctx, ref)
	if fault.Is(err, fault.NotFound) || err == nil && (d.Slot != slot || d.Status == AwaitingDelete) {
		return "", o, nil
	}
	if err != nil {
		return "", o, err
	}
	query := keys.Revisions(ref.Workspace, ref.Deployment)
	query.Reverse, query.Limit = true, skipped
	place := ref.Revision(before).Key()
	query.Cursor = query.CursorAfter(table.Place{Sort: place.SK, Key: place})
	page, err := s.table.Query(ctx, query)
	if err != nil {
		return "", o, fmt.Errorf("query revisions: %w", err)
	}
	var changes []revision.Change
	var writes []table.Write
	for _, item := range page.Items {
		r, err := revision.Decode(ref.Revision(keys.RevisionID(item.Key)), item, "")
		if err != nil {
			return "", o, err
		}
		if r.HadSlot() {
			oldest = ""
			break
		}
		if oldest = r.Revision; r.Status == revision.Queued {
			change := r.Superseded(s.now())
			changes, writes = append(changes, change), append(writes, change.Write)
		}
	}
	if len(writes) > 0 {
		o, err = s.outbox(ctx, d, d.told(changes...), writes...)
	}
	return oldest, o, err
}
