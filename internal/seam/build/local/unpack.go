package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/build/archive"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/upload"
)

// fetch puts the files to build into the tree.
func (j *job) fetch(ctx context.Context, tree string) (commit, error) {
	if j.spec.Tarball == "" {
		return j.clone(ctx, tree)
	}
	return j.unpack(ctx)
}

// unpack puts the files of an upload into the tree. The digest of the tarball takes the place
// of a commit's id, and the time at which its upload began takes the place of the commit's
// time.
func (j *job) unpack(ctx context.Context) (_ commit, err error) {
	ref, ok := upload.ParseOf(j.spec.Workspace, j.spec.Deployment, j.spec.Tarball)
	if !ok || j.builder.cfg.Uploads == nil {
		return commit{}, fmt.Errorf("%q is no upload of deployment %s that is kept here", j.spec.Tarball, j.spec.Deployment)
	}
	if err := j.note(revisionlog.Info, "unpacking %s", j.spec.Tarball); err != nil {
		return commit{}, err
	}
	tarball, err := j.builder.cfg.Uploads.Open(ctx, ref)
	if errors.Is(err, upload.ErrMissing) {
		return commit{}, archive.Missing
	}
	if err != nil {
		return commit{}, err
	}
	defer func() { err = errors.Join(err, tarball.Close()) }()
	digest, err := archive.Unpack(ctx, tarball, j.tree, archive.Default)
	if err != nil {
		return commit{}, err
	}
	return commit{id: digest, made: id.Time(ref.Upload)}, j.note(revisionlog.Info, "sha256 %s", digest)
}

// fetching describes the work of a build before it has the tree.
func (j *job) fetching() string {
	if j.spec.Tarball == "" {
		return "cloning the repository."
	}
	return "unpacking the tarball."
}
