package deployment

import (
	"context"
	"fmt"
	"slices"

	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/revision"
	"github.com/slipway-run/slipway/internal/table"
)

// removedAtOnce bounds the builds that one ForgetBuilds removes.
const removedAtOnce = 20

// ForgetBuilds hands remove the builds that only revisions beside the newest deployed ones have, oldest first, so many at a time. Such a revision can still be deployed again: its commit is
// built anew. One whose removal failed is handed to remove the next time. A deployment that got a revision meanwhile is ErrOvertaken.
func (s *Store) ForgetBuilds(ctx context.Context, d Deployment, newest int, remove func(ctx context.Context, revision string) error) error {
	query := keys.Revisions(d.Workspace, d.Deployment)
	query.Reverse = true
	items, err := table.AllItems(ctx, s.table, query)
	if err != nil {
		return fmt.Errorf("query revisions: %w", err)
	}
	var old []revision.Revision
	deployed, needed := 0, map[string]bool{}
	for _, item := range items {
		r, err := revision.Decode(d.Revision(keys.RevisionID(item.Key)), item, d.Slot)
		if err != nil {
			return err
		}
		if r.Status == revision.Deployed {
			deployed++
		}
		switch {
		case !r.Status.Terminal(), r.Status == revision.Deployed && (deployed <= newest || r.Revision == d.Active || r.Revision == d.Previous):
			// Revisions that were deployed again have the build of the first.
			needed[string(record.Encode(r.Artifact))] = true
		case r.Status == revision.Deployed && r.KeepsBuild():
			old = append(old, r)
		}
	}
	old = slices.DeleteFunc(old, func(r revision.Revision) bool { return !r.Forgotten && needed[string(record.Encode(r.Artifact))] })
	slices.Reverse(old)
	for _, r := range old[:min(len(old), removedAtOnce)] {
		if err := s.forgetBuild(ctx, d, r, remove); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) forgetBuild(ctx context.Context, d Deployment, r revision.Revision, remove func(context.Context, string) error) error {
	if !r.Forgotten {
		unchanged := table.Check{Key: d.Key(), If: table.Equals(attrLatest, d.Latest)}
		if err := s.overtaken(s.table.Transact(ctx, r.Forget(), unchanged)); err != nil {
			return err
		}
	}
	if err := remove(ctx, r.Revision); err != nil {
		return fmt.Errorf("remove build of revision %s: %w", r.Revision, err)
	}
	return s.overtaken(s.table.Transact(ctx, r.Forgot()))
}
