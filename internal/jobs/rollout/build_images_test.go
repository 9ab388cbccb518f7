package rollout_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/registry"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
)

// images is a registry that notes the images that it must keep.
type images struct {
	mu     sync.Mutex
	host   string
	kept   []string
	erased []string
	fails  bool
}

func (i *images) Repository(_ context.Context, ref registry.Ref) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.host + "/" + ref.Workspace + "/" + ref.Deployment, nil
}

func (i *images) Push(ctx context.Context, ref registry.Ref) (registry.Grant, error) {
	repository, err := i.Repository(ctx, ref)
	return registry.Grant{Repository: repository}, err
}

func (i *images) Keep(_ context.Context, _ registry.Ref, kept []string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.fails {
		return errInjected
	}
	i.kept = slices.Sorted(slices.Values(kept))
	return nil
}

func (i *images) Erase(_ context.Context, _, deployment string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.erased = append(i.erased, deployment)
	return nil
}

// fromPush is a request for a deployment whose image will be pushed later.
func fromPush(name string) deployment.NewDeployment {
	return deployment.NewDeployment{Workspace: workspace, Name: name, Source: revision.InternalDocker, SourceConfig: deployment.SourceConfig{DeploymentType: new("dev")}}
}

// TestPushedImages deploys more images than are kept, with a failure of the registry on the
// way, goes back to an old image, and moves the server to another address.
func TestPushedImages(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.images, m.sources = &images{host: "old.test"}, []revision.Source{revision.InternalDocker}
	s := m.start(t, m.table)
	d := s.create(t, fromPush("pushed"))
	if d.Latest != "" || d.Status != deployment.Ready {
		t.Fatalf("before there is an image the deployment is %s with revision %q", d.Status, d.Latest)
	}
	var ids, names []string
	push := func() {
		repository, err := m.images.Repository(t.Context(), registry.Ref(d.Ref))
		check.Must(t, err)
		image := fmt.Sprintf("%s@sha256:%064d", repository, len(ids))
		s.patch(t, d.Ref, deployment.Patch{RevisionConfig: revision.Config{ImageURI: &image}})
		d = s.settle(t, d.Ref)
		s.wantAtRest(t, d.Ref, revision.Deployed)
		ids, names = append(ids, d.Latest), append(names, image)
	}
	for range keptBuilds + 1 {
		push()
	}
	if diff := cmp.Diff(names[1:], m.images.kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	m.images.fails = true
	push()
	if diff := cmp.Diff(names[1:11], m.images.kept); diff != "" || !strings.Contains(m.log.String(), errInjected.Error()) {
		t.Errorf("kept (-want +got):\n%s\n%s", diff, m.log.String())
	}
	m.images.fails = false
	push()
	if diff := cmp.Diff(names[3:], m.images.kept); diff != "" {
		t.Errorf("kept after a trouble (-want +got):\n%s", diff)
	}
	for _, id := range ids[:3] {
		if _, err := s.deployments.Redeploy(t.Context(), d.Revision(id), nil); err == nil || !strings.Contains(err.Error(), "is not kept any more") {
			t.Errorf("revision %s, whose image is gone, is deployed again: %v", id, err)
		}
	}

	// A kept image is deployed again, from the registry's present address.
	m.images.host = "new.test:8080"
	d = s.redeploy(t, d.Ref, ids[3])
	release, ok := m.target.release(d.Latest)
	if want := strings.Replace(names[3], "old.test", "new.test:8080", 1); !ok || release.Artifact.Image != want {
		t.Errorf("the release runs %q, want %s", release.Artifact.Image, want)
	}
	if !slices.Contains(m.images.kept, names[3]) || len(m.images.kept) != keptBuilds {
		t.Errorf("kept are %v, want %s among them", m.images.kept, names[3])
	}

	check.Must(t, s.deployments.Delete(t.Context(), d.Ref, deployment.Deletion{}))
	s.awaitEnd(t, workflow.Teardown, d.Deployment)
	if !slices.Contains(m.images.erased, d.Deployment) {
		t.Errorf("erased are the images of %v", m.images.erased)
	}
}
