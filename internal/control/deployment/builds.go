package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

const (
	// removedAtOnce bounds the builds that one ForgetBuilds removes.
	removedAtOnce = 20
	// buildPage is how many revisions are read at a time, buildPages how many pages are read
	// at most: a build that is further back stays until its deployment is deleted.
	buildPage, buildPages = 50, 4
)

// ForgetBuilds calls remove for the builds that only revisions other than the newest deployed
// revisions have, oldest first, up to removedAtOnce at a time. Such a revision can still be
// deployed again: its commit is built again. If the removal of a build fails, the other builds
// are still removed, and remove is called for the failed build the next time. If the
// deployment got a revision meanwhile, ForgetBuilds returns record.ErrLost.
func (s *Store) ForgetBuilds(ctx context.Context, d Deployment, newest int, remove func(ctx context.Context, revision string) error) error {
	if d.Source.IsImage() {
		return nil // there are no builds
	}
	builds, err := s.readBuilds(ctx, d, newest)
	if err != nil {
		return err
	}
	old := builds.notNeeded()
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

// readBuilds reads the builds of revisions from the newest back, until newest deployed revisions in
// a row have no build: a revision that was deployed again is no further from its origin.
func (s *Store) readBuilds(ctx context.Context, d Deployment, newest int) (builds, error) {
	b, read := builds{deployment: d, newest: newest, needed: map[string]bool{}}, 0
	for r, err := range d.revisions(table.Items(ctx, s.table, d.before("", buildPage))) {
		if err != nil {
			return builds{}, err
		}
		b.add(r)
		if read++; read == buildPages*buildPage {
			return b, nil
		}
		if read%buildPage == 0 && b.gone >= newest {
			break
		}
	}
	b.complete = true
	return b, nil
}

// builds holds the builds of a deployment's revisions, read from the newest back.
type builds struct {
	deployment Deployment
	// newest is the number of deployed revisions whose builds are needed, deployed the number
	// of deployed revisions that were read.
	newest, deployed int
	// needed are the artifacts that must stay: revisions that were deployed again have the
	// build of the first revision.
	needed map[string]bool
	// images are the images of the revisions that need their images.
	images []string
	// old are the revisions with builds that are not among the newest. gone is the number of
	// deployed revisions without a build that were read after the last of them.
	old  []revision.Revision
	gone int
	// complete is set if no revision further back has a build.
	complete bool
}

// notNeeded are the revisions, oldest first, whose builds are not needed any more.
func (b *builds) notNeeded() []revision.Revision {
	old := slices.DeleteFunc(slices.Clone(b.old), func(r revision.Revision) bool { return !r.Forgotten && b.needed[artifactOf(r)] })
	slices.Reverse(old)
	return old
}

// add adds the next revision.
func (b *builds) add(r revision.Revision) {
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

// serves reports whether requests may go to the revision, now or after a rollback.
func (b *builds) serves(r revision.Revision) bool {
	return r.Revision == b.deployment.Active || r.Revision == b.deployment.Previous
}

// artifactOf returns a text that distinguishes revisions with different builds. For a revision
// with an image it is the image, even where the image's name has not been resolved.
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
