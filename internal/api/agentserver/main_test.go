package agentserver_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"github.com/slipway-run/slipway/infra/statemachines"
	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/agent/cron"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/store"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/metrics"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

const (
	// unknownID is well formed and is the id of no object.
	unknownID = "0197a000-0000-7000-8000-00000000dead"
	// agentID is the default assistant of the graph "agent".
	agentID = "fe096781-5601-53d2-b2f6-0d3403f7e9ca"
	version = "1.2.3"
)

// object is a JSON object.
type object = map[string]any

// fixture is the agent server behind a real HTTP server: one deployment of an agent, and a
// stranger's workspace.
type fixture struct {
	*httptest.Server
	deployments *deployment.Store
	keys        *apikey.Store
	crons       *cron.Store
	threads     *thread.Store
	runs        *run.Store
	table       table.Table
	// file is the table's file.
	file   string
	hasher secret.Hasher
	// key is the key of all calls unless a test uses another; stranger is the key of another
	// workspace.
	key, stranger string
	deployment    deployment.Ref
	// auth is the own authentication of the deployed revision; "" if it has no authentication.
	auth string
	// encryption is the own encryption of the deployed revision; "" if it has no encryption.
	encryption string
	// settings are the settings in the revision's configuration file.
	settings build.Settings
	// answers keeps the answers for repeated requests.
	answers *fixtures.Mortal
	// rescue looks for unfinished work as if it were much later.
	rescue func(context.Context) error
	// ahead is the time by which the clock of threads and runs is ahead.
	clock *fixtures.RunningClock
	// served gets the path of each request that the server has finished.
	served chan string
}

// setUp deploys an agent; nil is an agent that follows the script of each run.
func setUp(t *testing.T, agent graphtest.Func) *fixture {
	t.Helper()
	return setUpImpatient(t, agent, 0)
}

// setUpImpatient sets the time that a waiting connection stays silent.
func setUpImpatient(t *testing.T, agent graphtest.Func, heartbeat time.Duration) *fixture {
	t.Helper()
	f := setUpUndeployed(t, agent, heartbeat)
	f.deploy(t, "agent", "weather")
	return f
}

// setUpUndeployed leaves the deployment without an active revision.
func setUpUndeployed(t *testing.T, agent graphtest.Func, heartbeat time.Duration) *fixture {
	t.Helper()
	return setUpAt(t, graphtest.Start(t, agent), heartbeat)
}

// setUpKeeper deploys an agent that keeps checkpoints of its own.
func setUpKeeper(t *testing.T) *fixture {
	t.Helper()
	f := setUpAt(t, graphtest.StartKeeper(t), 0)
	f.deploy(t, "agent")
	return f
}

// setUpBounded deploys an agent on a server with other quotas.
func setUpBounded(t *testing.T, limits quota.Limits) *fixture {
	t.Helper()
	f := setUpLimited(t, graphtest.Start(t, nil), 0, limits)
	f.deploy(t, "agent")
	return f
}

// setUpAt deploys an agent that answers at an endpoint.
func setUpAt(t *testing.T, agent compute.Endpoint, heartbeat time.Duration) *fixture {
	t.Helper()
	return setUpLimited(t, agent, heartbeat, quota.Limits{})
}

func setUpLimited(t *testing.T, agent compute.Endpoint, heartbeat time.Duration, limits quota.Limits, change ...func(*agentserver.Config)) *fixture {
	t.Helper()
	key, file := fixtures.Key(t), filepath.Join(t.TempDir(), "table.db")
	tb := fixtures.TableAt(t, file)
	f := &fixture{file: file, served: make(chan string, 10_000), clock: new(fixtures.RunningClock), answers: &fixtures.Mortal{Table: tb}}
	log := slog.New(slog.DiscardHandler)
	f.deployments = deployment.NewStore(deployment.Config{Table: tb, Workflow: noRollouts{}, Sealer: key, Now: clock.System, Log: log})
	threads := thread.NewStore(tb, f.clock.Now, limits, slog.Default())
	runs := f.work(t, tb, threads, agent)
	hooks := webhook.NewStore(webhook.Config{Table: tb, Workflow: noRollouts{}, Sealer: key, Now: clock.System, Log: log})
	apiKeys := apikey.NewStore(tb, key, clock.System)
	f.keys = apiKeys
	assistants := assistant.NewStore(tb, clock.System)
	f.crons = cron.NewStore(cron.Config{Table: tb, Assistants: assistants, Threads: threads, Runs: runs, Deployments: f.deployments, Now: clock.System, Log: log})
	f.threads, f.runs, f.table = threads, runs, tb
	f.hasher = key
	mux := web.NewMux(log)
	mux.Limiter = web.NewLimiter(limits, web.Limits{}, f.clock.Now)
	config := agentserver.Config{
		Assistants: assistants, Store: store.NewStore(tb, clock.System, limits, slog.Default()), Crons: f.crons, Metrics: counted{metrics.New()},
		Tokens:      deployment.Agents{Store: f.deployments, Hasher: func(context.Context) (secret.Hasher, error) { return key, nil }},
		Deployments: f.deployments, Threads: threads, Runs: runs, Authenticator: auth.New(apiKeys), Version: version, Heartbeat: heartbeat,
		WebSockets: true, Now: f.clock.Now, AgentURL: func(_ context.Context, deploymentID string) string { return "https://slipway.test/d/" + deploymentID },
		Webhooks: hooks, Answers: idempotency.NewStore(f.answers, key, clock.System),
		Docs: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }),
		Agents: &runner.Agents{
			Deployments: f.deployments, Graph: graph.NewClient(nil),
			Target: targetAt(agent),
		},
	}
	for _, c := range change {
		c(&config)
	}
	check.Must(t, agentserver.Register(mux, config))
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { f.served <- r.URL.Path }()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	workspaces := workspace.NewStore(tb, clock.System)
	f.deployment.Workspace, f.key = newTenant(t, workspaces, apiKeys)
	_, f.stranger = newTenant(t, workspaces, apiKeys)
	f.deployment = f.newDeployment(t, "weather")
	return f
}

// now is the time of threads and runs.
// work starts the workflow engine with the runner on it, and returns the store of the runs
// that they carry out.
func (f *fixture) work(t *testing.T, tb table.Table, threads *thread.Store, agent compute.Endpoint) *run.Store {
	t.Helper()
	machine, err := statemachines.Files.ReadFile("run.asl.json")
	check.Must(t, err)
	transport := graph.NewTransport()
	var work *runner.Runner
	engine, err := local.New(local.Config{
		Table: tb, Definitions: fstest.MapFS{"run.asl.json": {Data: machine}}, Now: clock.System, Log: slog.New(slog.DiscardHandler),
		Substitutions: map[string]string{"RunnerFunctionArn": "runner"},
		Functions: map[string]workflow.TaskFunc{"runner": func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
			return work.Task(ctx, input)
		}},
	})
	check.Must(t, err)
	runs := run.NewStore(run.Config{Table: tb, Threads: threads, Workflow: engine, Now: f.clock.Now})
	later := func() time.Time { return clock.System().Add(time.Hour) }
	f.rescue = func(ctx context.Context) error {
		return run.NewStore(run.Config{Table: tb, Threads: threads, Workflow: engine, Now: later}).Rescue(ctx, later())
	}
	work = runner.New(runner.Config{
		Runs: runs, Deployments: f.deployments, Target: at{endpoint: agent}, Graph: graph.NewClient(transport), Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		engine.Close(ended)
		transport.CloseIdleConnections()
	})
	return runs
}

// counted is the Metrics of a server, which only shows that there are figures.
type counted struct{ *metrics.Metrics }

func (counted) Text(_ context.Context, _, deployment string) (string, error) {
	return "requests_of_" + deployment + " 1\n", nil
}

func (counted) Figures(_ context.Context, _, deployment string) (model.Figures, error) {
	return model.Figures{"requests": {{Labels: map[string]string{"deployment": deployment}, Value: new(1.0)}}}, nil
}

// at is a compute.Target. All its releases answer at one endpoint.
type at struct {
	compute.Target // only Acquire and Serves are called
	endpoint       compute.Endpoint
}

// targetAt is the Target of a runner.Agents.
func targetAt(agent compute.Endpoint) func(context.Context) (compute.Target, error) {
	return func(context.Context) (compute.Target, error) { return at{endpoint: agent}, nil }
}

func (a at) Acquire(ctx context.Context, ref compute.Ref) (compute.Endpoint, func(), error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(a.endpoint.URL, "http://"))
	if err != nil {
		return compute.Endpoint{}, nil, &compute.UnavailableError{Ref: ref, Status: compute.Status{State: compute.Progressing}}
	}
	return a.endpoint, func() {}, c.Close()
}

func (a at) Serves(ctx context.Context, ref compute.Ref) (bool, error) {
	_, _, err := a.Acquire(ctx, ref)
	return err == nil, nil
}

// noRollouts is the engine of the deployments. The tests roll them out themselves.
type noRollouts struct{ workflow.Engine }

func (noRollouts) Start(context.Context, workflow.Machine, string, json.RawMessage) error { return nil }

func (noRollouts) Stop(context.Context, workflow.Machine, string, string) error { return nil }

func newTenant(t *testing.T, workspaces *workspace.Store, apiKeys *apikey.Store) (id, key string) {
	t.Helper()
	w, err := workspaces.Create(t.Context(), rand.Text())
	check.Must(t, err)
	key, err = apiKeys.Create(t.Context(), w.ID)
	check.Must(t, err)
	return w.ID, key
}

// newDeployment creates a deployment in the workspace of the fixture's deployment.
func (f *fixture) newDeployment(t *testing.T, name string) deployment.Ref {
	t.Helper()
	repository, branch, file, kind, push := "https://git.test/team/agent", "main", "framework.json", "dev", false
	d, err := f.deployments.Create(t.Context(), deployment.NewDeployment{
		Workspace: f.deployment.Workspace, Name: name, Source: revision.GitHub,
		SourceConfig:   deployment.SourceConfig{RepoURL: &repository, DeploymentType: &kind, BuildOnPush: &push},
		RevisionConfig: revision.Config{RepoRef: &branch, ConfigPath: &file},
	})
	check.Must(t, err)
	return d.Ref
}

// deploy makes the deployment's first revision the active one, as a rollout does, and returns its
// id.
func (f *fixture) deploy(t *testing.T, graphs ...string) string {
	t.Helper()
	var active string
	for _, status := range []revision.Status{revision.AwaitingDeploy, revision.Deploying, revision.Deployed} {
		d, err := f.deployments.Get(t.Context(), f.deployment)
		check.Must(t, err)
		_, r, err := f.deployments.GetRevision(t.Context(), f.deployment.Revision(d.Slot))
		check.Must(t, err)
		if status != revision.Deployed {
			check.Must(t, f.deployments.Provisioned(t.Context(), d, r.Change(clock.System(), status)))
			continue
		}
		r.Artifact.Graphs, r.Artifact.Auth, r.Artifact.Encryption, r.Artifact.Settings = graphs, f.auth, f.encryption, f.settings
		check.Must(t, f.deployments.Promote(t.Context(), d, r))
		active = r.Revision
	}
	return active
}

// response is an answer whose body was read, and decoded if it is JSON.
type response struct {
	*http.Response
	text []byte
	body any
}

// member returns a member of the body, by path.
func (r response) member(path ...string) any {
	value := r.body
	for _, name := range path {
		o, _ := value.(map[string]any)
		value = o[name]
	}
	return value
}

// string returns a member that is a string, "" if it is not a string.
func (r response) string(path ...string) string {
	text, _ := r.member(path...).(string)
	return text
}

// path returns the full path of a path of the agent server.
func (f *fixture) path(path string) string { return "/d/" + f.deployment.Deployment + path }

// call sends a request with the fixture's key to the agent server. A body that is not a string
// or nil is sent as JSON.
func (f *fixture) call(t *testing.T, method, path string, body any) response {
	t.Helper()
	return f.send(t, method, f.path(path), body, map[string]string{auth.HeaderKey: f.key})
}

func (f *fixture) send(t *testing.T, method, path string, body any, headers map[string]string) response {
	t.Helper()
	answer := f.open(t.Context(), t, method, path, body, headers)
	defer answer.Body.Close()
	r := response{Response: answer}
	var err error
	if r.text, err = io.ReadAll(answer.Body); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	if r.Header.Get("Content-Type") == "application/json" {
		if err := json.Unmarshal(r.text, &r.body); err != nil {
			t.Fatalf("%s %s answered %s: %v", method, path, r.text, err)
		}
	}
	if r.Header.Get("X-Request-Id") == "" {
		t.Errorf("%s %s: the response has no X-Request-Id", method, path)
	}
	return r
}

// open sends a request and does not read the answer's body.
func (f *fixture) open(ctx context.Context, t *testing.T, method, path string, body any, headers map[string]string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, f.URL+path, encode(t, body))
	check.Must(t, err)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	answer, err := f.Client().Do(request)
	check.Must(t, err)
	return answer
}

func encode(t *testing.T, body any) io.Reader {
	t.Helper()
	switch body := body.(type) {
	case nil:
		return nil
	case string:
		return bytes.NewReader([]byte(body))
	}
	text, err := json.Marshal(body)
	check.Must(t, err)
	return bytes.NewReader(text)
}

// with returns a copy of a body with one more member.
func with(body object, name string, value any) object {
	changed := object{name: value}
	for other, value := range body {
		if other != name {
			changed[other] = value
		}
	}
	return changed
}

func wantStatus(t *testing.T, r response, want int) {
	t.Helper()
	if r.StatusCode != want {
		t.Fatalf("%s %s: got status %d, want %d: %s", r.Request.Method, r.Request.URL.Path, r.StatusCode, want, r.text)
	}
}

// wantDetail checks an error whose detail is a sentence.
func wantDetail(t *testing.T, r response, status int, detail string) {
	t.Helper()
	if r.StatusCode != status || r.member("detail") != detail {
		t.Errorf("%s %s: got %d %s\nwant %d %q", r.Request.Method, r.Request.URL.Path, r.StatusCode, r.text, status, detail)
	}
}
