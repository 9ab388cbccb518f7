package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

const (
	// removedAtOnce bounds the builds that one ForgetBuilds removes.
	removedAtOnce = 20
	// buildPage is how many revisions are read at a time, buildPages how often at most: a build
	// that is further back than that stays until its deployment is deleted.
	buildPage, buildPages = 50, 4
)

// ForgetBuilds hands remove the builds that only revisions beside the newest deployed ones have,
// oldest first, so many at a time. Such a revision can still be deployed again: its commit is built
// anew. One whose removal failed holds up no other, and is handed to remove the next time. If the
// deployment got a revision meanwhile, it returns record.ErrLost.
func (s *Store) ForgetBuilds(ctx context.Context, d Deployment, newest int, remove func(ctx context.Context, revision string) error) error {
	if d.Source.IsImage() {
		return nil // nothing is built
	}
	found, err := s.readBuilds(ctx, d, newest)
	if err != nil {
		return err
	}
	old := found.notNeeded()
	var failures []error
	for _, r := range old[:min(len(old), removedAtOnce)] {
		err := s.forgetBuild(ctx, d, r, remove)
		if errors.Is(err, record.ErrLost) {
			return err
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// readBuilds reads what revisions have from the newest back until as many in a row have nothing as
// are kept: one that was deployed again is no further than that from the one that it was made from.
func (s *Store) readBuilds(ctx context.Context, d Deployment, newest int) (builds, error) {
	query := keys.Revisions(d.Workspace, d.Deployment)
	query.Reverse, query.Limit = true, buildPage
	found := builds{deployment: d, newest: newest, needed: map[string]bool{}}
	for range buildPages {
		page, err := s.table.Query(ctx, query)
		if err != nil {
			return builds{}, fmt.Errorf("query revisions: %w", err)
		}
		if err := found.read(page.Items); err != nil {
			return builds{}, err
		}
		if query.Cursor = page.Cursor; page.Cursor == "" || found.gone >= newest {
			found.complete = true
			break
		}
	}
	return found, nil
}

// builds is what a deployment's revisions have, read from the newest back.
type builds struct {
	deployment Deployment
	// newest is of how many deployed revisions the builds are needed, deployed how many were read.
	newest, deployed int
	// needed are the artifacts that have to stay: revisions that were deployed again have the build
	// of the first.
	needed map[string]bool
	// images are those of the revisions that need theirs.
	images []string
	// old are the revisions with builds beside the newest, gone is how many deployed ones without
	// came behind the last of them.
	old  []revision.Revision
	gone int
	// complete tells that no revision further back has anything.
	complete bool
}

// notNeeded are the revisions, oldest first, whose builds are not needed any more.
func (b *builds) notNeeded() []revision.Revision {
	old := slices.DeleteFunc(slices.Clone(b.old), func(r revision.Revision) bool { return !r.Forgotten && b.needed[artifactOf(r)] })
	slices.Reverse(old)
	return old
}

// read takes a page of revisions.
func (b *builds) read(items []*table.Item) error {
	for _, item := range items {
		r, err := revision.Decode(b.deployment.Revision(keys.RevisionID(item.Key)), item, b.deployment.Slot)
		if err != nil {
			return err
		}
		if r.Status == revision.Deployed {
			b.deployed++
		}
		switch {
		case !r.Status.Terminal(), r.Status == revision.Deployed && (b.deployed <= b.newest || b.serves(r)):
			b.needed[artifactOf(r)] = true
			if image := r.Image(); image != "" {
				b.images = append(b.images, image)
			}
		case r.Status == revision.Deployed && r.KeepsBuild():
			b.old, b.gone = append(b.old, r), 0
		case r.Status == revision.Deployed:
			b.gone++
		}
	}
	return nil
}

// serves tells whether requests may go to the revision, now or after a rollback.
func (b *builds) serves(r revision.Revision) bool {
	return r.Revision == b.deployment.Active || r.Revision == b.deployment.Previous
}

// artifactOf tells revisions apart that have builds of their own. An image is one even where
// nothing has resolved its name.
func artifactOf(r revision.Revision) string {
	if image := r.Image(); image != "" {
		return image
	}
	return string(record.Encode(r.Artifact))
}

func (s *Store) forgetBuild(ctx context.Context, d Deployment, r revision.Revision, remove func(context.Context, string) error) error {
	if err := s.markForgotten(ctx, d, r); err != nil {
		return err
	}
	if err := remove(ctx, r.Revision); err != nil {
		return fmt.Errorf("remove build of revision %s: %w", r.Revision, err)
	}
	return record.Commit(ctx, s.table, record.Write(r.Forgot()))
}
