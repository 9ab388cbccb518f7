package deployment

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/distribution/reference"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/registry"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// errNoRegistry is the answer to clients that want to push where there is no registry.
var errNoRegistry = fault.New(fault.Invalid, "This server takes no images, as it has no registry for them. Deploy from sources (internal_source), from a git repository (github), or "+
	"from an image of a registry of your own (external_docker).")

// PushToken allows a client to push images for a deployment that is made from pushed images.
func (s *Store) PushToken(ctx context.Context, ref Ref) (registry.Grant, error) {
	d, err := s.living(ctx, ref)
	if err != nil {
		return registry.Grant{}, err
	}
	if d.Source != revision.InternalDocker {
		return registry.Grant{}, fault.New(fault.Invalid, "Push tokens are only available for 'internal_docker' source deployments; deployment ID %s has the source '%s'.", d.Deployment, d.Source)
	}
	if s.cfg.Images == nil {
		return registry.Grant{}, errNoRegistry
	}
	grant, err := s.cfg.Images.Push(ctx, registry.Ref(ref))
	if err != nil {
		return registry.Grant{}, fmt.Errorf("let push: %w", err)
	}
	return grant, nil
}

// KeepImages calls keep with the images that revisions need: the images of revisions in
// flight, of the newest deployed revisions and of the revisions that serve. Revisions with
// other images cannot be deployed again, until these images are pushed again. If the
// deployment got a revision meanwhile, KeepImages returns record.ErrLost.
func (s *Store) KeepImages(ctx context.Context, d Deployment, newest int, keep func(ctx context.Context, images []string) error) error {
	builds, err := s.readBuilds(ctx, d, newest)
	if err != nil || !builds.complete {
		return err
	}
	old := builds.notNeeded()
	for _, r := range old {
		if err := s.markForgotten(ctx, d, r); err != nil {
			return err
		}
	}
	if err := keep(ctx, builds.images); err != nil {
		return fmt.Errorf("keep images: %w", err)
	}
	var failures []error
	for _, r := range old {
		failures = append(failures, record.Commit(ctx, s.table, record.Write(r.Forgot())))
	}
	return errors.Join(failures...)
}

// markForgotten lets nothing be made from the build of a revision any more, unless the
// deployment got another revision meanwhile.
func (s *Store) markForgotten(ctx context.Context, d Deployment, r revision.Revision) error {
	if r.Forgotten {
		return nil
	}
	unchanged := table.Check{Key: d.Key(), If: table.Equals(attrLatest, d.Latest)}
	return record.Commit(ctx, s.table, record.Write(r.Forget(), unchanged))
}

// builtImages begins the names of images that the platform has built, as the engine spells them.
const builtImages = "docker.io/slipway/"

// checkImages refuses names of images that no registry could have, and names by which an
// engine would find an image that belongs to another party: by an id, among the images that
// the platform has built, or in the repository of another deployment. For a deployment that is
// made from pushed images, it refuses all images that were not pushed for the deployment. image
// is the image that the request names, nil if it names no image.
func (s *Store) checkImages(ctx context.Context, d Deployment, image *string, p pod) error {
	own, err := s.ownRepository(ctx, d)
	if err != nil {
		return err
	}
	if d.Source == revision.InternalDocker {
		switch {
		case image == nil:
			return nil
		case own.repository == "":
			return errNoRegistry
		case !registry.In(own.repository, *image):
			return fault.New(fault.Invalid, "source_revision_config.image_uri must be an image of the deployment's own repository, by its digest or a tag (%s@sha256:...), not %q.", own.repository, *image)
		}
		return nil
	}
	var c podCheck
	check := func(name string, loc []any) {
		if wrong := own.wrong(name); wrong != "" {
			c.breaks(loc, "%s", wrong)
		}
	}
	if image != nil && d.Source == revision.ExternalDocker {
		check(*image, []any{"body", "source_revision_config", "image_uri"})
	}
	for i, of := range p.InitContainers {
		check(of.Image, at("init_containers", i, "image"))
	}
	for i, of := range p.Sidecars {
		check(of.Image, at("sidecars", i, "image"))
	}
	return c.err()
}

// ownNames says which images of the platform's registry belong to a deployment.
type ownNames struct {
	// all is the prefix of the names of all deployments' images, repository is the deployment's own
	// repository. Both are "" if the platform has no registry.
	all, repository string
}

func (s *Store) ownRepository(ctx context.Context, d Deployment) (ownNames, error) {
	if s.cfg.Images == nil {
		return ownNames{}, nil
	}
	repository, err := s.cfg.Images.Repository(ctx, registry.Ref(d.Ref))
	if err != nil {
		return ownNames{}, fmt.Errorf("name repository: %w", err)
	}
	all, _, _ := strings.Cut(repository, d.Workspace)
	return ownNames{all, repository}, nil
}

// wrong says why an image may not be used, "" if it may be used.
func (n ownNames) wrong(image string) string {
	if strings.HasPrefix(image, "sha256:") {
		return "An image is named by its repository, with a tag or a digest, not by the id that an engine has for it"
	}
	named, err := reference.ParseDockerRef(image)
	if err != nil {
		return fmt.Sprintf("This is no name of an image (%v)", err)
	}
	// The images that the platform has built are in the repository that all other names begin with.
	own := n.all != "" && strings.HasPrefix(canonical(named.Name())+"/", canonical(n.all))
	if strings.HasPrefix(named.Name(), builtImages) || own && !registry.In(n.repository, image) {
		return "This image belongs to another deployment"
	}
	return ""
}

// ecrHost is a host of ECR: the registry of an account in a region answers at several hosts.
var ecrHost = regexp.MustCompile(`^(\d{12})\.dkr[.-]ecr(?:-fips)?\.([a-z0-9-]+)\..*`)

// canonical returns the name of an image with one spelling for all hosts of its registry.
func canonical(name string) string {
	host, path, _ := strings.Cut(name, "/")
	host = strings.TrimSuffix(strings.ToLower(host), ":443")
	return ecrHost.ReplaceAllString(host, "$1.$2") + "/" + path
}
