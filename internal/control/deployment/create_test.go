package deployment_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
)

// sameDeployment compares the members that deployments show, not the number of their changes.
var sameDeployment = cmpopts.IgnoreUnexported(deployment.Deployment{})

func TestCreateMakesADeploymentWithItsFirstRevision(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	request := fromGit("weather")
	request.SourceConfig.DeploymentType, request.SourceConfig.BuildOnPush = new("dev"), new(true)
	d := f.create(t, request)
	want := deployment.Deployment{
		Ref: deployment.Ref{Workspace: workspace, Deployment: d.Deployment},
		Spec: deployment.Spec{
			Name: "weather", Source: revision.GitHub, SourceConfig: request.SourceConfig, RevisionConfig: request.RevisionConfig,
			TracingProject: d.TracingProject,
		},
		Created: d.Created, Updated: d.Created, Status: deployment.AwaitingDatabase, Latest: d.Latest, Slot: d.Latest, Busy: true,
	}
	if diff := cmp.Diff(want, d, sameDeployment); diff != "" || d.Latest == "" || d.TracingProject == "" || d.Created.IsZero() {
		t.Errorf("deployment (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(d, f.get(t, d.Ref), sameDeployment); diff != "" {
		t.Errorf("the deployment as it is read later (-created +read):\n%s", diff)
	}
	r := f.revision(t, d.Ref, d.Latest)
	if r.Status != revision.Creating || cmp.Diff(request.RevisionConfig, r.Config) != "" || *r.RepoURL != *request.SourceConfig.RepoURL {
		t.Errorf("first revision: got %+v, want it CREATING from the request", r)
	}
}

func TestCreateStartsTheRolloutWithIDsOnly(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("weather"))
	want := []started{{
		workflow.Rollout, d.Latest,
		`{"workspace_id":"` + workspace + `","deployment_id":"` + d.Deployment + `","revision_id":"` + d.Latest + `"}`,
	}}
	if diff := cmp.Diff(want, f.engine.all()); diff != "" {
		t.Errorf("started (-want +got):\n%s", diff)
	}
}

func TestCreateMakesATracingProjectOfTheSameName(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create(t, fromGit("weather"))
	if _, err := f.table.Get(t.Context(), keys.TracingProject(workspace, "weather")); err != nil {
		t.Errorf("get tracing project: %v", err)
	}
}

// TestARefusedCreateLeavesNothing checks that no list shows the deployment, that its name is
// free, and that no workflow was started.
func TestARefusedCreateLeavesNothing(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	bad := fromGit("weather")
	bad.RevisionConfig.RepoRef = nil
	if _, err := f.Create(t.Context(), bad); !fault.Is(err, fault.Invalid) {
		t.Fatalf("got %v, want a fault of kind invalid", err)
	}
	f.wantNothing(t, "weather")
}

// wantNothing checks that the workspace has no deployments, and no partly created deployments.
func (f *fixture) wantNothing(t *testing.T, name string) {
	t.Helper()
	found, err := f.Search(t.Context(), workspace, deployment.Filter{}, record.Window{Limit: 10})
	if err != nil || len(found.Items) != 0 {
		t.Errorf("list: got %v and %v, want nothing", found, err)
	}
	for _, key := range []table.Key{keys.DeploymentName(workspace, name), keys.TracingProject(workspace, name)} {
		if item, err := f.table.Get(t.Context(), key); !errors.Is(err, table.ErrNotFound) {
			t.Errorf("under %v there is %v (%v), want nothing", key, item, err)
		}
	}
	if due := f.overdue(t, f.clock.Now().Add(time.Hour)); len(due) != 0 {
		t.Errorf("reconcile finds %v, want nothing", due)
	}
	if got := f.engine.all(); len(got) != 0 {
		t.Errorf("started %v, want nothing", got)
	}
}

func TestANameBelongsToOneDeploymentOfAWorkspace(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	first := f.create(t, fromGit("weather"))
	if _, err := f.Create(t.Context(), fromImage("weather")); !fault.Is(err, fault.Conflict) {
		t.Errorf("the same name again: got %v, want a conflict", err)
	}
	elsewhere := fromGit("weather")
	elsewhere.Workspace = "0197a000-0000-7000-8000-000000000002"
	f.create(t, elsewhere)
	f.create(t, fromGit("Weather"))
	if diff := cmp.Diff(first, f.get(t, first.Ref), sameDeployment); diff != "" {
		t.Errorf("the first deployment was changed (-before +after):\n%s", diff)
	}
}

// TestCreatesOfOneNameRace sends 20 concurrent requests for a name: one wins, and nothing of
// the other requests is stored.
func TestCreatesOfOneNameRace(t *testing.T) {
	t.Parallel()
	const n = 20
	f := setUp(t)
	results := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { _, results[i] = f.Create(t.Context(), fromGit("weather")) })
	}
	all.Wait()
	won := 0
	for _, err := range results {
		switch {
		case err == nil:
			won++
		case !fault.Is(err, fault.Conflict):
			t.Errorf("a request that lost got %v, want a conflict", err)
		}
	}
	page, err := f.Search(t.Context(), workspace, deployment.Filter{}, record.Window{Limit: 100})
	found := page.Items
	if won != 1 || err != nil || len(found) != 1 || len(f.engine.all()) != 1 {
		t.Errorf("%d requests won, %d deployments are listed (%v), %d rollouts started; want 1 of each", won, len(found), err, len(f.engine.all()))
	}
}

// TestACreateThatIsStoredSucceeds checks that an engine that refuses does not fail the
// request: reconcile starts the rollout later, and the client must not be told to try again
// with a name that is already taken.
func TestACreateThatIsStoredSucceeds(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.engine.refuses = errors.New("throttled")
	d, err := f.Create(t.Context(), fromGit("weather"))
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	if d, err = f.Patch(t.Context(), d.Ref, deployment.Patch{RevisionConfig: revision.Config{RepoRef: new("dev")}}); err != nil {
		t.Fatalf("patch: %v", err)
	}
	if err := f.Delete(t.Context(), d.Ref, deployment.Deletion{}); err != nil {
		t.Fatalf("delete: %v", err)
	}
	if due := f.overdue(t, f.clock.Now().Add(time.Hour)); len(due) != 1 {
		t.Errorf("reconcile finds %v, want the deployment", due)
	}
}

// TestAClientThatLeavesDoesNotHoldUpTheRollout ends the request between the write and the
// start of the workflow.
func TestAClientThatLeavesDoesNotHoldUpTheRollout(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ctx, leave := context.WithCancel(t.Context())
	leaving := deployment.NewStore(deployment.Config{
		Table: afterWrite{f.table, leave}, Workflow: f.engine, Sealer: f.sealer, Now: f.clock.Now,
	})
	d, err := leaving.Create(ctx, fromGit("weather"))
	check.Must(t, err)
	if got := f.engine.all(); len(got) != 1 || got[0].Name != d.Latest {
		t.Errorf("started %v, want the rollout of %s", got, d.Latest)
	}
}

// afterWrite is a table that calls a function after each of its transactions.
type afterWrite struct {
	table.Table
	happen func()
}

func (w afterWrite) Transact(ctx context.Context, writes ...table.Write) error {
	defer w.happen()
	return w.Table.Transact(ctx, writes...)
}
