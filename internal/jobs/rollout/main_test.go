package rollout_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/infra/statemachines"
	"github.com/slipway-run/slipway/internal/agent/store"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/jobs/rollout"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/secret/keyfile"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

const workspace = "0197a000-0000-7000-8000-000000000001"

// farFuture is after the end of every lease.
var farFuture = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// machine holds the parts that outlive a server: its disk, and the builder and the target with
// their data.
type machine struct {
	file    string
	table   *sqlite.Table
	key     *keyfile.Key
	builder *builder
	target  *target
	logs    *logs
	engine  clock.Clock
	// now is the rollout's clock.
	now clock.Clock
	log check.Log
	// patience is the Patience of the rollout.
	patience time.Duration
	// sources are the sources that have a target.
	sources []revision.Source
	// images is the registry to which clients push; nil: there is no registry.
	images *images
	// credentials answers for the integrations.
	credentials integrations
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	file := filepath.Join(t.TempDir(), "table.db")
	key := fixtures.Key(t)
	tb := fixtures.TableAt(t, file)
	logs := &logs{kept: map[string]bool{}}
	return &machine{
		file: file, table: tb, key: key, builder: newBuilder(logs), target: newTarget(), logs: logs,
		engine: hurried(), now: clock.System, sources: []revision.Source{revision.GitHub, revision.ExternalDocker},
	}
}

// hurried is a clock that goes on by more than the longest pause of a machine each time it is read,
// so that an engine never waits.
func hurried() clock.Clock { return fixtures.NewClockAt(clock.System(), 61*time.Second).Now }

// late returns the clock that the machine has from then on.
func (m *machine) late() *fixtures.RunningClock {
	late := new(fixtures.RunningClock)
	m.now = late.Now
	return late
}

// server is one process on a machine.
type server struct {
	*machine
	deployments *deployment.Store
	threads     *thread.Store
	workflow    *local.Engine
	rollout     *rollout.Rollout
	// around, when not nil, is called in place of each step of a rollout or teardown.
	around func(ctx context.Context, step string, perform func(context.Context) (json.RawMessage, error)) (json.RawMessage, error)
	tasks  *tasks
	// killed is closed by kill.
	killed    chan struct{}
	closeOnce sync.Once

	mu   sync.Mutex
	ends map[string]chan struct{}
}

// start starts a server on a table: the machine's table, or a table around it.
func (m *machine) start(t *testing.T, tb table.Table) *server {
	t.Helper()
	s := &server{machine: m, tasks: newTasks(), killed: make(chan struct{}), ends: map[string]chan struct{}{}}
	log := slog.New(slog.NewJSONHandler(&m.log, nil))
	var err error
	s.workflow, err = local.New(local.Config{
		Table: tb, Definitions: statemachines.Files, Now: m.engine, Log: log, Observer: s.observe,
		Substitutions: map[string]string{"RolloutFunctionArn": "rollout", "RunnerFunctionArn": "runner", "WebhookFunctionArn": "webhook"},
		Functions:     map[string]workflow.TaskFunc{"rollout": s.task, "runner": s.task, "webhook": s.task},
	})
	check.Must(t, err)
	s.threads = thread.NewStore(tb, clock.System, quota.Limits{}, slog.Default())
	stored := deployment.Config{Table: tb, Workflow: s.workflow, Sealer: m.key, Now: m.now, Log: log, Integrations: m.credentials}
	config := rollout.Config{
		Integrations: m.credentials, Threads: s.threads, Items: store.NewStore(tb, clock.System, quota.Limits{}, slog.Default()), Workflow: s.workflow, Builder: m.builder, Logs: m.logs, Hasher: m.key, Now: m.now, Log: log, Patience: m.patience,
		Stopping: s.workflow.Closing(),
	}
	if m.images != nil {
		stored.Images, config.Images, config.Kept = m.images, m.images, []rollout.Eraser{m.images}
	}
	s.deployments = deployment.NewStore(stored)
	targets := map[revision.Source]compute.Target{}
	for _, source := range m.sources {
		targets[source] = m.target
	}
	config.Deployments, config.Targets = s.deployments, targets
	s.rollout = rollout.New(config)
	t.Cleanup(s.kill)
	return s
}

// kill ends the server at once.
func (s *server) kill() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.closeOnce.Do(func() { close(s.killed) })
	s.workflow.Close(ctx)
	s.tasks.close()
}

// resume does the work of a server at its start with the data that an earlier server left.
func (s *server) resume(t *testing.T) {
	t.Helper()
	if err := s.rollout.Restore(t.Context()); err != nil {
		t.Fatalf("restore: %v", err)
	}
	if err := s.workflow.Resume(t.Context()); err != nil {
		t.Fatalf("resume: %v", err)
	}
	s.rescue(t)
}

// overdue returns the deployments that reconcile will look after.
func (s *server) overdue(t *testing.T) (found []deployment.Deployment) {
	t.Helper()
	err := s.deployments.Overdue(t.Context(), farFuture, func(_ context.Context, d deployment.Deployment) error {
		found = append(found, d)
		return nil
	})
	check.Must(t, err)
	return found
}

func (s *server) rescue(t *testing.T) {
	t.Helper()
	if err := s.rollout.Rescue(t.Context(), farFuture); err != nil {
		t.Fatalf("rescue: %v", err)
	}
}

// stepPause is the shortest real duration of each step. The clock of the engine is hurried, so
// a rollout that waits for a test would otherwise ask again without a pause and take a whole
// processor.
const stepPause = time.Millisecond

func (s *server) task(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
	if !s.tasks.begin() {
		return nil, errDead
	}
	defer s.tasks.end()
	<-time.After(stepPause)
	perform := func(ctx context.Context) (json.RawMessage, error) { return s.rollout.Task(ctx, input) }
	if s.around == nil {
		return perform(ctx)
	}
	var task struct{ Step string }
	if err := json.Unmarshal(input, &task); err != nil {
		return nil, err
	}
	return s.around(ctx, task.Step, perform)
}

func (s *server) observe(event local.Event) {
	switch event.Type {
	case local.ExecutionSucceeded, local.ExecutionFailed, local.ExecutionTimedOut, local.ExecutionAborted:
		close(s.end(event.Machine, event.Name))
	}
}

// end is closed when the execution ends.
func (s *server) end(machine workflow.Machine, name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := string(machine) + "/" + name
	if s.ends[id] == nil {
		s.ends[id] = make(chan struct{})
	}
	return s.ends[id]
}

// awaitEnd waits for an execution, and reports whether it was running.
func (s *server) awaitEnd(t *testing.T, machine workflow.Machine, name string) bool {
	t.Helper()
	execution, err := s.workflow.Describe(t.Context(), machine, name)
	if err != nil || execution.Status != workflow.Running {
		return false
	}
	<-s.end(machine, name)
	return true
}

// settle waits until no rollout of the deployment is running. It looks at the oldest rollout
// first, because a rollout starts the next rollout before it ends.
func (s *server) settle(t *testing.T, ref deployment.Ref) deployment.Deployment {
	t.Helper()
	for again := true; again; {
		again = false
		for _, r := range slices.Backward(s.revisions(t, ref)) {
			again = s.awaitEnd(t, workflow.Rollout, r.Revision) || again
		}
	}
	return s.get(t, ref)
}

func (s *server) get(t *testing.T, ref deployment.Ref) deployment.Deployment {
	t.Helper()
	d, err := s.deployments.Get(t.Context(), ref)
	check.Must(t, err)
	return d
}

func (s *server) revision(t *testing.T, ref deployment.Ref, id string) revision.Revision {
	t.Helper()
	_, r, err := s.deployments.GetRevision(t.Context(), ref.Revision(id))
	check.Must(t, err)
	return r
}

// revisions returns all revisions of a deployment, newest first.
func (s *server) revisions(t *testing.T, ref deployment.Ref) []revision.Revision {
	t.Helper()
	found, err := s.deployments.SearchRevisions(t.Context(), ref, deployment.RevisionFilter{}, record.Window{Limit: 1000})
	check.Must(t, err)
	return found.Items
}

// fromGit is a request for a deployment from a git repository.
func fromGit(name string) deployment.NewDeployment {
	return deployment.NewDeployment{
		Workspace: workspace, Name: name, Source: revision.GitHub,
		SourceConfig:   deployment.SourceConfig{RepoURL: new("https://git.test/team/agent")},
		RevisionConfig: revision.Config{RepoRef: new("main"), ConfigPath: new("framework.json")},
	}
}

// fromImage is a request for a deployment from a container image.
func fromImage(name string) deployment.NewDeployment {
	return deployment.NewDeployment{
		Workspace: workspace, Name: name, Source: revision.ExternalDocker, RevisionConfig: revision.Config{ImageURI: new("registry.test/agent:1")},
	}
}

// again is a PATCH that makes a revision.
func again(ref string) deployment.Patch {
	return deployment.Patch{RevisionConfig: revision.Config{RepoRef: &ref}}
}

func (s *server) create(t *testing.T, request deployment.NewDeployment) deployment.Deployment {
	t.Helper()
	d, err := s.deployments.Create(t.Context(), request)
	check.Must(t, err)
	return d
}

func (s *server) patch(t *testing.T, ref deployment.Ref, patch deployment.Patch) deployment.Deployment {
	t.Helper()
	d, err := s.deployments.Patch(t.Context(), ref, patch)
	check.Must(t, err)
	return d
}

// wantAtRest checks that no rollout is running, that the newest revision has the status, and
// that exactly the active release runs.
func (s *server) wantAtRest(t *testing.T, ref deployment.Ref, want revision.Status) {
	t.Helper()
	d := s.get(t, ref)
	r := s.revision(t, ref, d.Latest)
	if r.Status != want {
		t.Errorf("the newest revision is %s (%s: %s), want %s", r.Status, r.Reason, r.Message, want)
	}
	if d.Busy || d.Slot != d.Latest || d.Retiring != "" || d.Canary != 0 {
		t.Errorf("slot %s, busy %v, retiring %q, canary %d, want the slot free", d.Slot, d.Busy, d.Retiring, d.Canary)
	}
	if (d.Active == d.Latest) != (want == revision.Deployed) {
		t.Errorf("active is %q, the newest %q, which is %s", d.Active, d.Latest, r.Status)
	}
	var active []string
	if d.Active != "" {
		active = []string{d.Active}
	}
	if diff := cmp.Diff(active, s.target.left()); diff != "" {
		t.Errorf("running releases (-active +got):\n%s", diff)
	}
	if due := s.overdue(t); len(due) != 0 {
		t.Errorf("reconcile still looks after %v", due)
	}
	for _, r := range s.revisions(t, ref) {
		if !r.Status.Terminal() {
			t.Errorf("revision %s rests as %s", r.Revision, r.Status)
		}
	}
}

// tasks are the steps that have not returned. Unlike the Wait of a sync.WaitGroup, its Wait
// may be called while the first steps begin.
type tasks struct {
	mu      sync.Mutex
	changed *sync.Cond
	count   int
	// over: no more steps begin.
	over bool
}

func newTasks() *tasks {
	ts := &tasks{}
	ts.changed = sync.NewCond(&ts.mu)
	return ts
}

// begin reports whether a step may begin. The step ends with end.
func (ts *tasks) begin() bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if !ts.over {
		ts.count++
	}
	return !ts.over
}

func (ts *tasks) end() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.count--
	ts.changed.Broadcast()
}

// Wait waits until no step is running.
func (ts *tasks) Wait() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for ts.count > 0 {
		ts.changed.Wait()
	}
}

// close waits for the steps that have begun, and lets no other steps begin.
func (ts *tasks) close() {
	ts.mu.Lock()
	ts.over = true
	ts.mu.Unlock()
	ts.Wait()
}
