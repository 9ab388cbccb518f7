package deployment

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/registry"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Images names the repository of the deployment's images.
func (r Ref) Images() registry.Ref {
	return registry.Ref{Workspace: r.Workspace, Deployment: r.Deployment}
}

// errNoRegistry is the answer to clients that want to push where there is no registry to push
// to.
var errNoRegistry = fault.New(fault.Invalid, "This server takes no images, as it has no registry for them. Deploy from sources (internal_source), from a git repository (github), or "+
	"from an image of a registry of your own (external_docker).")

// PushToken allows a client to push images for a deployment that is made from pushed images.
func (s *Store) PushToken(ctx context.Context, ref Ref) (registry.Grant, error) {
	d, err := s.Get(ctx, ref)
	if err != nil {
		return registry.Grant{}, err
	}
	if err := d.mustLive(); err != nil {
		return registry.Grant{}, err
	}
	if d.Source != revision.InternalDocker {
		return registry.Grant{}, fault.New(fault.Invalid, "Push tokens are only available for 'internal_docker' source deployments; deployment ID %s has the source '%s'.", d.Deployment, d.Source)
	}
	if s.cfg.Images == nil {
		return registry.Grant{}, errNoRegistry
	}
	grant, err := s.cfg.Images.Push(ctx, ref.Images())
	if err != nil {
		return registry.Grant{}, fmt.Errorf("let push: %w", err)
	}
	return grant, nil
}

// ownImage refuses an image that was not pushed for the deployment.
func (s *Store) ownImage(ctx context.Context, d Deployment, image *string) error {
	if d.Source != revision.InternalDocker || image == nil {
		return nil
	}
	if s.cfg.Images == nil {
		return errNoRegistry
	}
	repository, err := s.cfg.Images.Repository(ctx, d.Images())
	if err != nil {
		return fmt.Errorf("name repository: %w", err)
	}
	if !registry.In(repository, *image) {
		return fault.New(fault.Invalid, "source_revision_config.image_uri must be an image of the deployment's own repository, by its digest or a tag (%s@sha256:...), not %q.", repository, *image)
	}
	return nil
}

// KeepImages calls keep with the images that revisions need: the images of revisions in
// flight, of the newest deployed revisions and of the revisions that serve. Revisions with
// other images cannot be deployed again, until these images are pushed again. If the
// deployment got a revision meanwhile, KeepImages returns record.ErrLost.
func (s *Store) KeepImages(ctx context.Context, d Deployment, newest int, keep func(ctx context.Context, images []string) error) error {
	found, err := s.readBuilds(ctx, d, newest)
	if err != nil || !found.complete {
		return err
	}
	old := found.notNeeded()
	for _, r := range old {
		if err := s.markForgotten(ctx, d, r); err != nil {
			return err
		}
	}
	if err := keep(ctx, found.images); err != nil {
		return fmt.Errorf("keep images: %w", err)
	}
	var failures []error
	for _, r := range old {
		failures = append(failures, record.Commit(ctx, s.table, record.Write(r.Forgot())))
	}
	return errors.Join(failures...)
}

// markForgotten prevents that anything is made from the build of a revision, unless the
// deployment got another revision meanwhile.
func (s *Store) markForgotten(ctx context.Context, d Deployment, r revision.Revision) error {
	if r.Forgotten {
		return nil
	}
	unchanged := table.Check{Key: d.Key(), If: table.Equals(attrLatest, d.Latest)}
	return record.Commit(ctx, s.table, record.Write(r.Forget(), unchanged))
}
