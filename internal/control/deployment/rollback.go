package deployment

import (
	"context"
	"fmt"
	"strings"

	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// MayRollBack reports whether there is a revision to go back to when the active revision does
// not stay healthy, and the deployment asks for that. A revision that was itself rolled back
// does not count.
func (s *Store) MayRollBack(ctx context.Context, d Deployment) (bool, error) {
	if d.AutoRollback == nil || !*d.AutoRollback || d.Previous == "" {
		return false, nil
	}
	_, previous, err := s.GetRevision(ctx, d.Revision(d.Previous))
	if err != nil {
		return false, fmt.Errorf("read the revision before: %w", err)
	}
	return previous.Reason != revision.ReasonRolledBack, nil
}

// Rebuild makes a revision from the active revision whose build may not run any more, so that
// its commit is built again. It does so once: nothing happens if another revision was made
// since.
func (s *Store) Rebuild(ctx context.Context, d Deployment, active revision.Revision) error {
	if d.Latest != active.Revision || d.Active != active.Revision {
		return nil
	}
	_, o, err := s.deployAgain(ctx, d, active, "rebuild of revision "+active.Revision, quota.Placed{Beyond: true})
	if err != nil {
		return fmt.Errorf("build revision %s again: %w", active.Revision, err)
	}
	return record.Commit(ctx, s.table, o)
}

// RollBack deploys the previously active revision again, as a new revision, because the active
// revision, relapsed, did not stay healthy. The active revision continues to serve, as far as
// it can, until the new revision is healthy. It keeps its status and says why it was given up.
// RollBack returns record.ErrLost if the deployment was changed meanwhile, or has another
// revision in flight.
func (s *Store) RollBack(ctx context.Context, d Deployment, relapsed revision.Revision, why string) error {
	if d.Busy || d.Active != relapsed.Revision {
		return record.ErrLost
	}
	_, from, err := s.GetRevision(ctx, d.Revision(d.Previous))
	if err != nil {
		return fmt.Errorf("read the revision before: %w", err)
	}
	d.pausePushes(from)
	message := "Revision ID " + from.Revision + " was deployed again, because this one did not stay healthy. " + strings.TrimSpace(why)
	var note []table.Write
	if relapsed.Reason != revision.ReasonRolledBack {
		note = append(note, relapsed.Note(s.now(), revision.ReasonRolledBack, message).Write)
	}
	_, o, err := s.deployAgain(ctx, d, from, "automatic rollback to revision "+from.Revision, quota.Placed{Beyond: true}, note...)
	if err != nil {
		return err
	}
	return record.Commit(ctx, s.table, o)
}
