package deployment

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slipway-run/slipway/internal/control/revision"
)

// MayRollBack tells whether there is a revision to go back to when the active one does not stay healthy, and the deployment asks for that. A revision that was itself
// rolled back is none.
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

// RollBack deploys the revision that was active before again, as a new one, because the active one, which is relapsed, did not stay healthy. That one goes on serving, as far as it
// can, until the new one is healthy; it keeps its status and says why it was given up. A deployment that was changed meanwhile, or has another revision in flight, is
// ErrOvertaken.
func (s *Store) RollBack(ctx context.Context, d Deployment, relapsed revision.Revision, why string) error {
	if d.Busy || d.Active != relapsed.Revision {
		return ErrOvertaken
	}
	_, from, err := s.GetRevision(ctx, d.Revision(d.Previous))
	if err != nil {
		return fmt.Errorf("read the revision before: %w", err)
	}
	message := "Revision ID " + from.Revision + " was deployed again, because this one did not stay healthy. " + strings.TrimSpace(why)
	if relapsed.Reason != revision.ReasonRolledBack {
		if err := s.table.Transact(ctx, relapsed.Note(s.now(), revision.ReasonRolledBack, message)); err != nil {
			return s.overtaken(err)
		}
	}
	_, err = s.deployAgain(ctx, d, from, "automatic rollback to revision "+from.Revision)
	if errors.Is(err, errChanged) {
		return ErrOvertaken
	}
	return err
}
