package deployment_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/registry"
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
		if err != nil {
			t.Fatal(err)
		}
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
