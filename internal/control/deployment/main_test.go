package deployment_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/secret/keyfile"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// workspace is the tenant of the tests that need only one.
const workspace = "0197a000-0000-7000-8000-000000000001"

// fixture is a store on a SQLite file, with an engine that records the started workflows and a
// clock that the test moves.
type fixture struct {
	*deployment.Store
	file         string
	table        *sqlite.Table
	listeners    *listener.Store
	integrations *integration.Service
	engine       *engine
	sealer       *keyfile.Key
	clock        *fixtures.Clock
}

func setUp(t testing.TB) *fixture {
	t.Helper()
	file := filepath.Join(t.TempDir(), "table.db")
	key := fixtures.Key(t)
	moving := fixtures.NewMovingClock()
	tb := fixtures.TableAt(t, file, sqlite.WithClock(moving.Now))
	f := &fixture{file: file, table: tb, engine: &engine{}, sealer: key, clock: moving}
	f.listeners = listener.NewStore(listener.Config{Table: tb, Now: f.clock.Now})
	var err error
	f.integrations, err = integration.New(integration.Config{Table: tb, Sealer: key, Now: f.clock.Now})
	check.Must(t, err)
	f.Store = deployment.NewStore(deployment.Config{
		Table: tb, Workflow: f.engine, Sealer: key, Now: f.clock.Now, Listeners: f.listeners, Integrations: f.integrations,
	})
	return f
}

// started is one execution that the store requested.
type started struct {
	Machine workflow.Machine
	Name    string
	Input   string
}

// engine is a workflow.Engine that starts nothing and records the requests.
type engine struct {
	mu      sync.Mutex
	starts  []started
	refuses error
}

func (e *engine) Start(ctx context.Context, machine workflow.Machine, name string, input json.RawMessage) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if e.refuses != nil {
		return e.refuses
	}
	e.starts = append(e.starts, started{machine, name, string(input)})
	return nil
}

func (e *engine) Stop(context.Context, workflow.Machine, string, string) error {
	return workflow.ErrNotFound
}

func (e *engine) Describe(context.Context, workflow.Machine, string) (workflow.Execution, error) {
	return workflow.Execution{}, workflow.ErrNotFound
}

func (e *engine) all() []started {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.starts)
}

// fromGit is a request that keeps every rule.
func fromGit(name string) deployment.NewDeployment {
	return deployment.NewDeployment{
		Workspace: workspace, Name: name, Source: revision.GitHub,
		SourceConfig:   deployment.SourceConfig{RepoURL: new("https://git.test/team/agent")},
		RevisionConfig: revision.Config{RepoRef: new("main"), ConfigPath: new("framework.json")},
	}
}

// fromImage is a request for the other source that keeps every rule.
func fromImage(name string) deployment.NewDeployment {
	return deployment.NewDeployment{
		Workspace: workspace, Name: name, Source: revision.ExternalDocker,
		SourceConfig:   deployment.SourceConfig{ResourceSpec: json.RawMessage(`{"cpu":1}`)},
		RevisionConfig: revision.Config{ImageURI: new("registry.test/agent:1")},
	}
}

func (f *fixture) create(t testing.TB, request deployment.NewDeployment) deployment.Deployment {
	t.Helper()
	d, err := f.Create(t.Context(), request)
	check.Must(t, err)
	return d
}

func (f *fixture) patch(t *testing.T, ref deployment.Ref, patch deployment.Patch) deployment.Deployment {
	t.Helper()
	d, err := f.Patch(t.Context(), ref, patch)
	check.Must(t, err)
	return d
}

func (f *fixture) get(t *testing.T, ref deployment.Ref) deployment.Deployment {
	t.Helper()
	d, err := f.Get(t.Context(), ref)
	check.Must(t, err)
	return d
}

func (f *fixture) revision(t *testing.T, ref deployment.Ref, id string) revision.Revision {
	t.Helper()
	_, r, err := f.GetRevision(t.Context(), ref.Revision(id))
	check.Must(t, err)
	return r
}

// revisions returns all revisions of a deployment, newest first.
func (f *fixture) revisions(t *testing.T, ref deployment.Ref) []revision.Revision {
	t.Helper()
	found, err := f.SearchRevisions(t.Context(), ref, deployment.RevisionFilter{}, record.Window{Limit: 1000})
	check.Must(t, err)
	return found.Items
}

// overdue returns the deployments that reconcile looks after at a time.
func (f *fixture) overdue(t *testing.T, dueBy time.Time) (found []deployment.Deployment) {
	t.Helper()
	err := f.Overdue(t.Context(), dueBy, func(_ context.Context, d deployment.Deployment) error {
		found = append(found, d)
		return nil
	})
	check.Must(t, err)
	return found
}
