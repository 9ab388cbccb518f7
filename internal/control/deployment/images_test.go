package deployment_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/registry"
	"github.com/slipway-run/slipway/internal/test/check"
)

// pushes is a registry that accepts everything.
type pushes struct{ registry.Registry }

const pushedTo = "registry.test/images"

func (pushes) Repository(context.Context, registry.Ref) (string, error) { return pushedTo, nil }

// TestImagesAreKeptUntilAllIsKnown keeps the images of three of many deployed revisions: as
// long as the images of older revisions are not known, no image is removed.
func TestImagesAreKeptUntilAllIsKnown(t *testing.T) {
	t.Parallel()
	const newest, page = 3, 50
	f := setUp(t)
	f.Store = deployment.NewStore(deployment.Config{Table: f.table, Workflow: f.engine, Sealer: f.sealer, Now: f.clock.Now, Images: pushes{}})
	request := fromGit("pushed")
	request.Source, request.SourceConfig, request.RevisionConfig = revision.InternalDocker, deployment.SourceConfig{}, revision.Config{}
	ref := f.create(t, request).Ref
	var images, ids []string
	push := func() {
		images = append(images, fmt.Sprintf("%s@sha256:%064d", pushedTo, len(images)))
		f.patch(t, ref, deployment.Patch{RevisionConfig: revision.Config{ImageURI: &images[len(images)-1]}})
	}
	deploy := func() {
		push()
		ids = append(ids, f.deployNext(t, ref))
	}
	keep := func() (kept []string, asked bool) {
		err := f.KeepImages(t.Context(), f.get(t, ref), newest, func(_ context.Context, images []string) error {
			kept, asked = images, true
			return nil
		})
		check.Must(t, err)
		slices.Sort(kept)
		return kept, asked
	}
	for range newest + 1 {
		deploy()
	}
	if kept, _ := keep(); !slices.Equal(kept, images[1:]) {
		t.Errorf("kept are %v, want %v", kept, images[1:])
	}
	if _, err := f.Redeploy(t.Context(), ref.Revision(ids[0]), nil); err == nil || !strings.Contains(err.Error(), "is not kept any more") {
		t.Errorf("a revision whose image may be gone is deployed again: %v", err)
	}
	push()
	inFlight := images[len(images)-1]
	if kept, _ := keep(); !slices.Contains(kept, inFlight) {
		t.Errorf("kept are %v, without %s", kept, inFlight)
	}
	for range 4 * page {
		push()
	}
	if kept, asked := keep(); asked {
		t.Errorf("only %v are kept, though not all revisions were read", kept)
	}
}

// TestAttackImagesThatBelongToOthers names images that no registry has, and images of other
// deployments, as the image of a deployment, of an init container and of a sidecar.
func TestAttackImagesThatBelongToOthers(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	digest := strings.Repeat("a", 64)
	for image, good := range map[string]bool{
		"registry.test/agent:1": true,
		"agent":                 true,
		"localhost:5000/team/agent@sha256:" + digest: true,
		"--privileged":                        false,
		"a b":                                 false,
		"localhost/../x":                      false,
		"Upper/Case":                          false,
		"agent:1\n":                           false,
		"sha256:" + digest:                    false,
		digest:                                false,
		"slipway/agent:" + id.New(time.Now()): false,
		"docker.io/slipway/agent:1":           false,
	} {
		request := fromImage("agent")
		request.RevisionConfig.ImageURI = &image
		wantImage(t, f, request, "image_uri", image, good)
		for _, member := range []string{"init_containers", "sidecars"} {
			request := fromImage("agent")
			spec, err := json.Marshal(map[string]any{member: []any{map[string]any{"name": "c", "image": image}}})
			check.Must(t, err)
			request.SourceConfig.ResourceSpec = spec
			wantImage(t, f, request, member, image, good)
		}
	}
}

// repositories is a registry that has a repository for each deployment below its name.
type repositories struct {
	registry.Registry
	name string
}

func (r repositories) Repository(_ context.Context, ref registry.Ref) (string, error) {
	return r.name + "/" + ref.Workspace + "/" + ref.Deployment, nil
}

// TestAttackImagesThatWerePushedForOthers names images in the platform's own registry, also by
// other names of its host, and those that were built there.
func TestAttackImagesThatWerePushedForOthers(t *testing.T) {
	t.Parallel()
	other := id.New(time.Now())
	for name, spellings := range map[string][]string{
		"own.test/images": {"own.test/images", "OWN.test/images", "own.test:443/images"},
		"123456789012.dkr.ecr.eu-central-1.amazonaws.com/slipway-agents": {
			"123456789012.dkr.ecr.eu-central-1.amazonaws.com/slipway-agents", "123456789012.dkr.ecr-fips.eu-central-1.amazonaws.com/slipway-agents",
			"123456789012.dkr-ecr.eu-central-1.on.aws/slipway-agents", "123456789012.dkr-ecr-fips.eu-central-1.on.aws/slipway-agents",
		},
	} {
		f := setUp(t)
		f.Store = deployment.NewStore(deployment.Config{Table: f.table, Workflow: f.engine, Sealer: f.sealer, Now: f.clock.Now, Images: repositories{name: name}})
		want := func(image string, good bool) {
			t.Helper()
			request := fromImage("agent")
			request.RevisionConfig.ImageURI = &image
			wantImage(t, f, request, "image_uri", image, good)
		}
		for _, spelling := range spellings {
			want(spelling+"/"+other+"/"+other+":1", false)
			want(spelling+"/"+workspace+"/"+other+":1", false)
			want(spelling+":"+other, false)
		}
		want(name+"2:1", true)
		want("own.test/team/agent:1", true)
		want("123456789012.dkr.ecr.eu-west-1.amazonaws.com/slipway-agents:1", true)
	}
}

// wantImage checks that a request is accepted, or is refused as unprocessable at the field.
func wantImage(t *testing.T, f *fixture, request deployment.NewDeployment, field, image string, good bool) {
	t.Helper()
	request.ValidateOnly = true
	_, err := f.Create(t.Context(), request)
	if good && err != nil {
		t.Errorf("%s %q is refused: %v", field, image, err)
	}
	if !good && !refusedAt(err, field) {
		t.Errorf("%s %q: got %v, want it refused at the field", field, image, err)
	}
}

// refusedAt reports whether an error says that a field has the wrong shape.
func refusedAt(err error, field string) bool {
	refused, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return false
	}
	for _, detail := range refused.Details {
		for _, member := range detail.Loc {
			if member == field {
				return true
			}
		}
	}
	return false
}
