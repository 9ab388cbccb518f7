package deployment_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
	"github.com/slipway-run/slipway/internal/test/check"
)

func (f *fixture) delete(t *testing.T, ref deployment.Ref) {
	t.Helper()
	check.Must(t, f.Delete(t.Context(), ref, deployment.Deletion{}))
}

func TestADeletedDeploymentLeavesTheListAndItsName(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("weather"))
	f.delete(t, d.Ref)
	if got := f.get(t, d.Ref).Status; got != deployment.AwaitingDelete {
		t.Errorf("got status %s, want AWAITING_DELETE", got)
	}
	if found, err := f.Search(t.Context(), workspace, deployment.Filter{}, record.Window{Limit: 10}); err != nil || len(found.Items) != 0 {
		t.Errorf("list: got %v (%v), want nothing", found, err)
	}
	other := f.create(t, fromGit("weather"))
	if other.Deployment == d.Deployment {
		t.Error("the name went to the deleted deployment")
	}
	want := []started{
		{workflow.Rollout, d.Latest, `{"workspace_id":"` + workspace + `","deployment_id":"` + d.Deployment + `","revision_id":"` + d.Latest + `"}`},
		{workflow.Teardown, d.Deployment, `{"workspace_id":"` + workspace + `","deployment_id":"` + d.Deployment + `","teardown":1}`},
	}
	if diff := cmp.Diff(want, f.engine.all()[:2]); diff != "" {
		t.Errorf("started (-want +got):\n%s", diff)
	}
}

func TestDeletingAgainDoesNothingMore(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("weather"))
	f.delete(t, d.Ref)
	other := f.create(t, fromGit("weather"))
	f.delete(t, d.Ref)
	if _, err := f.table.Get(t.Context(), keys.DeploymentName(workspace, "weather")); err != nil {
		t.Errorf("the name of another deployment: %v", err)
	}
	if got := f.get(t, other.Ref).Status; got != deployment.AwaitingDatabase {
		t.Errorf("the other deployment is %s", got)
	}
}

func TestWhatIsBeingDeletedCannotBeChanged(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("weather"))
	f.delete(t, d.Ref)
	want := f.get(t, d.Ref)
	for _, patch := range []deployment.Patch{{}, again, {Name: new("other")}} {
		if _, err := f.Patch(t.Context(), d.Ref, patch); !fault.Is(err, fault.Conflict) {
			t.Errorf("got %v, want a conflict", err)
		}
	}
	if diff := cmp.Diff(want, f.get(t, d.Ref), sameDeployment); diff != "" || len(f.revisions(t, d.Ref)) != 1 {
		t.Errorf("a refused PATCH changed it (-before +after):\n%s", diff)
	}
}

func TestOnlyTheOwnDeploymentCanBeDeleted(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("weather"))
	for _, ref := range []deployment.Ref{{Workspace: workspace, Deployment: "unknown"}, {Workspace: "another", Deployment: d.Deployment}} {
		if err := f.Delete(t.Context(), ref, deployment.Deletion{}); !fault.Is(err, fault.NotFound) {
			t.Errorf("%v: got %v, want a fault of kind not_found", ref, err)
		}
	}
	if got := f.get(t, d.Ref).Status; got != deployment.AwaitingDatabase {
		t.Errorf("it is %s now", got)
	}
}

// TestARolloutDoesNotWriteToADeletedDeployment checks each write of a rollout.
func TestARolloutDoesNotWriteToADeletedDeployment(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	created := f.create(t, fromGit("weather"))
	d, r := f.carry(t, created.Ref)
	f.delete(t, d.Ref)
	marked := f.get(t, d.Ref)
	for name, write := range map[string]func() error{
		"Advance": func() error { return f.Advance(t.Context(), marked, r.Change(f.clock.Now(), revision.Deployed)) },
		"Promote": func() error { return f.Promote(t.Context(), marked, r) },
		"Fail":    func() error { return f.Fail(t.Context(), marked, r, "REASON", "words") },
	} {
		if err := write(); !errors.Is(err, record.ErrLost) {
			t.Errorf("%s: got %v, want ErrLost", name, err)
		}
	}
	if got := f.revision(t, d.Ref, r.Revision).Status; got != revision.Deploying {
		t.Errorf("the revision is %s now", got)
	}
}

// TestErasingGoesPageByPage erases a deployment of several pages; each revision is passed to
// forget before it is erased.
func TestErasingGoesPageByPage(t *testing.T) {
	t.Parallel()
	const n = 60
	f := setUp(t)
	d := f.create(t, fromGit("weather"))
	want := []string{d.Latest}
	for range n - 1 {
		want = append(want, f.patch(t, d.Ref, again).Latest)
	}
	f.delete(t, d.Ref)
	var forgotten []string
	pages := 0
	for more := true; more; pages++ {
		var err error
		more, err = f.EraseRevisions(t.Context(), d.Ref, func(ref revision.Ref) error {
			f.revision(t, d.Ref, ref.Revision)
			forgotten = append(forgotten, ref.Revision)
			return nil
		})
		check.Must(t, err)
	}
	if diff := cmp.Diff(want, forgotten); diff != "" || pages < 2 {
		t.Errorf("forgotten in %d pages (-want +got):\n%s", pages, diff)
	}
	if _, err := f.Get(t.Context(), d.Ref); !fault.Is(err, fault.NotFound) {
		t.Errorf("afterwards: got %v, want a fault of kind not_found", err)
	}
	f.wantPartitionsEmpty(t, d)
}

// wantPartitionsEmpty checks that nothing is stored of a deployment.
func (f *fixture) wantPartitionsEmpty(t *testing.T, d deployment.Deployment) {
	t.Helper()
	for _, query := range []table.Query{{PK: d.Key().PK}, keys.DeploymentList(workspace), keys.Rollouts(f.clock.Now().Add(time.Hour)), keys.Releases()} {
		if page, err := f.table.Query(t.Context(), query); err != nil || len(page.Items) != 0 {
			t.Errorf("%s %s: got %v (%v), want nothing", query.Index, query.PK, page.Items, err)
		}
	}
}

func TestWhatCannotBeForgottenIsNotErased(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("weather"))
	f.delete(t, d.Ref)
	refused := fmt.Errorf("refused")
	if _, err := f.EraseRevisions(t.Context(), d.Ref, func(revision.Ref) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("got %v, want %v", err, refused)
	}
	f.revision(t, d.Ref, d.Latest)
}

// TestTheMessagesOfADeletedDeploymentAreNotSent, because its rules for them are gone.
func TestTheMessagesOfADeletedDeploymentAreNotSent(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, err := f.OwnWebhooks(t.Context(), workspace, "0197a000-0000-7000-8000-0000000000d9")
	if refused, ok := errors.AsType[*webhook.Refusal](err); !ok || refused.Why != "The deployment was deleted." {
		t.Errorf("got %v, want a refusal", err)
	}
}

// TestALateDeletionSparesTheProjectOfTheNextDeployment of the name, which was deleted too and has
// left its project.
func TestALateDeletionSparesTheProjectOfTheNextDeployment(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	erase := deployment.Deletion{TracingProject: true}
	first := f.create(t, fromGit("weather"))
	check.Must(t, f.Delete(t.Context(), first.Ref, erase))
	next := f.create(t, fromGit("weather"))
	f.delete(t, next.Ref)
	check.Must(t, f.Delete(t.Context(), first.Ref, erase))
	if p, err := f.TracingProject(t.Context(), next.Ref); err != nil || p.ID != next.TracingProject {
		t.Errorf("got %+v (%v)", p, err)
	}
}
