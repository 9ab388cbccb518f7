package deployment

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/upload"
)

// unnamed is how long an upload is kept that no revision names: a revision may still name it.
const unnamed = 24 * time.Hour

// Upload returns the address to which the tarball of the deployment's next revision can be
// uploaded, and the name by which the revision must refer to it. base is the address under
// which the client reaches this server.
func (s *Store) Upload(ctx context.Context, ref Ref, base string) (upload.Ref, upload.Grant, error) {
	d, err := s.living(ctx, ref)
	if err != nil {
		return upload.Ref{}, upload.Grant{}, err
	}
	if d.Source != revision.InternalSource {
		return upload.Ref{}, upload.Grant{}, fault.New(fault.Invalid, "Upload URLs are only available for 'internal_source' source deployments; the source of this one is '%s'.", d.Source)
	}
	if s.cfg.Uploads == nil {
		return upload.Ref{}, upload.Grant{}, fault.New(fault.Unavailable, "This server has no place for uploads.")
	}
	if err := s.cfg.Files.Room(d.Workspace); err != nil {
		return upload.Ref{}, upload.Grant{}, err
	}
	to := upload.Ref{Workspace: d.Workspace, Deployment: d.Deployment, Upload: id.New(s.now())}
	grant, err := s.cfg.Uploads.Grant(ctx, to, base)
	if err != nil {
		return upload.Ref{}, upload.Grant{}, fmt.Errorf("grant an upload: %w", err)
	}
	return to, grant, nil
}

// ForgetUploads erases the uploads of a deployment that are not the source of a revision with
// a build or of the next revision, unless they are new.
func (s *Store) ForgetUploads(ctx context.Context, d Deployment, uploads upload.Store) error {
	if d.Source != revision.InternalSource {
		return nil
	}
	keeps, err := s.keptUploads(ctx, d.Ref)
	if err != nil {
		return err
	}
	return upload.Prune(ctx, uploads, d.Workspace, d.Deployment, keeps)
}

// keptUploads returns a function that reports whether ForgetUploads keeps an upload.
func (s *Store) keptUploads(ctx context.Context, ref Ref) (func(upload.Ref) bool, error) {
	named, err := s.namedUploads(ctx, ref)
	young := s.now().Add(-unnamed)
	return func(ref upload.Ref) bool { return named[ref.Path()] || id.Time(ref.Upload).After(young) }, err
}

// namedUploads returns the upload for the next revision, and the uploads of the newest
// revisions, except of the revisions that have no build any more, or never had a build.
func (s *Store) namedUploads(ctx context.Context, ref Ref) (map[string]bool, error) {
	d, err := s.Get(ctx, ref) // in its present state
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	name := func(c revision.Config) {
		if c.TarballPath != nil {
			named[*c.TarballPath] = true
		}
	}
	name(d.RevisionConfig)
	read := 0
	for r, err := range d.revisions(table.Items(ctx, s.table, d.before("", buildPage))) {
		if err != nil {
			return nil, err
		}
		if !r.Status.Terminal() || r.Status == revision.Deployed && !r.Forgotten {
			name(r.Config)
		}
		if read++; read == buildPages*buildPage {
			break
		}
	}
	return named, nil
}
