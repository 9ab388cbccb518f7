package controlplane_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/api/docs"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/control/push"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/tenant/trust"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// unknownID is well formed and names no resource.
const unknownID = "0197a000-0000-7000-8000-00000000dead"

// webhookSecret is the webhook secret of the GitHub App.
const webhookSecret = "the-secret-of-the-webhook"

// fixture is the control plane behind a real HTTP server, with two workspaces.
type fixture struct {
	*httptest.Server
	mux         *web.Mux
	deployments *deployment.Store
	listeners   *listener.Store
	logs        *files.Logs
	logDir      string
	engine      *engine
	keys        *apikey.Store
	table       table.Table
	config      controlplane.Config
	// own is the caller unless a test names another caller; other belongs to another workspace.
	own, other tenant
}

type tenant struct{ workspace, key string }

// headers are the credentials of a caller.
func (c tenant) headers() map[string]string {
	return map[string]string{auth.HeaderKey: c.key, auth.HeaderTenant: c.workspace}
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	return setUpWith(t, func(*deployment.Config, *controlplane.Config) {})
}

// setUpWith is setUp of a server with other settings.
func setUpWith(t testing.TB, change func(*deployment.Config, *controlplane.Config)) *fixture {
	t.Helper()
	key, tb := fixtures.Key(t), fixtures.Table(t)
	f := &fixture{engine: &engine{}, table: tb}
	log := slog.New(slog.DiscardHandler)
	store, config := deployment.Config{Table: tb, Workflow: f.engine, Sealer: key, Now: clock.System, Log: log}, controlplane.Config{}
	f.listeners = listener.NewStore(listener.Config{
		Table: tb, Sealer: key, Now: clock.System, Log: log,
		Token: func(_ context.Context, revision string) (string, error) {
			return secret.InvokeToken(key, revision), nil
		},
	})
	store.Listeners, config.Listeners = f.listeners, f.listeners
	config.Webhooks = webhook.NewStore(webhook.Config{Table: tb, Workflow: f.engine, Sealer: key, Now: clock.System, Log: log})
	store.Subscribers = config.Webhooks
	var err error
	config.Integrations, err = integration.New(integration.Config{Table: tb, Sealer: key, Now: clock.System})
	check.Must(t, err)
	change(&store, &config)
	store.Integrations = config.Integrations
	f.listeners = config.Listeners
	f.deployments = deployment.NewStore(store)
	f.logDir = filepath.Join(t.TempDir(), "logs")
	if f.logs, err = files.Open(f.logDir, clock.System); err != nil {
		t.Fatal(err)
	}
	config.Logs = &deployment.Logs{Deployments: f.deployments, Reader: f.logs, Appender: f.logs, Now: clock.System}
	config.Push = push.NewReceiver(push.Config{
		Table: tb, Now: clock.System, Builder: f.deployments, Installations: config.Integrations,
		Hasher:  func(context.Context) (secret.Hasher, error) { return key, nil },
		Secrets: func(context.Context) ([]string, error) { return []string{webhookSecret}, nil },
	})
	if config.BaseURL == nil {
		config.BaseURL = func(context.Context) string { return callbackBase }
	}
	apiKeys, workspaces := apikey.NewStore(tb, key, clock.System), workspace.NewStore(tb, clock.System)
	mux := web.NewMux(store.Log)
	limiter := web.NewLimiter(store.Quotas, web.Limits{}, clock.System)
	mux.Limiter = limiter
	config.Deployments, config.Authenticator = f.deployments, auth.New(apiKeys)
	config.Tenancy = controlplane.Tenancy{
		Workspaces: workspaces, Rules: trust.NewStore(tb, clock.System), Audit: audit.NewStore(tb, clock.System),
		Keys:   func(context.Context) (*apikey.Store, error) { return apiKeys, nil },
		Quotas: &quota.Usage{Table: tb, Limits: store.Quotas, Files: store.Files, Live: limiter},
	}
	if config.AgentURL == nil {
		config.AgentURL = func(_ context.Context, deploymentID string) string { return "https://slipway.test/d/" + deploymentID }
	}
	if err = controlplane.Register(mux, config); err != nil {
		t.Fatal(err)
	}
	docs.Register(mux)
	f.keys, f.config, f.mux = apiKeys, config, mux
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	f.own, f.other = newTenant(t, workspaces, apiKeys), newTenant(t, workspaces, apiKeys)
	return f
}

func newTenant(t testing.TB, workspaces *workspace.Store, apiKeys *apikey.Store) tenant {
	t.Helper()
	w, err := workspaces.Create(t.Context(), rand.Text())
	check.Must(t, err)
	key, err := apiKeys.Create(t.Context(), w.ID)
	check.Must(t, err)
	return tenant{w.ID, key}
}

// engine is a workflow.Engine that counts its calls, and does nothing else.
type engine struct{ starts atomic.Int64 }

func (e *engine) Start(context.Context, workflow.Machine, string, json.RawMessage) error {
	e.starts.Add(1)
	return nil
}

func (e *engine) Stop(context.Context, workflow.Machine, string, string) error {
	return workflow.ErrNotFound
}

func (e *engine) Describe(context.Context, workflow.Machine, string) (workflow.Execution, error) {
	return workflow.Execution{}, workflow.ErrNotFound
}

// response is an answer with its body read, and decoded if it is JSON.
type response struct {
	*http.Response
	text []byte
	body any
}

// member returns a member of the body, by path.
func (r response) member(path ...string) any {
	value := r.body
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

// id returns a member that is a string, "" if it is not a string.
func (r response) id(path ...string) string {
	text, _ := r.member(path...).(string)
	return text
}

// call sends a request as the own tenant. A body that is not a string or nil is sent as JSON.
func (f *fixture) call(t *testing.T, method, path string, body any) response {
	t.Helper()
	return f.send(t, method, path, body, f.own.headers())
}

func (f *fixture) send(t *testing.T, method, path string, body any, headers map[string]string) response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, f.URL+path, encode(t, body))
	check.Must(t, err)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	answer, err := f.Client().Do(request)
	check.Must(t, err)
	defer answer.Body.Close()
	r := response{Response: answer}
	if r.text, err = io.ReadAll(answer.Body); err != nil {
		t.Fatal(err)
	}
	if len(r.text) > 0 && !strings.HasPrefix(r.Header.Get("Content-Type"), "text/plain") {
		decoder := json.NewDecoder(bytes.NewReader(r.text))
		decoder.UseNumber()
		if err := decoder.Decode(&r.body); err != nil {
			t.Fatalf("%s %s answered %s: %v", method, path, r.text, err)
		}
	}
	if r.Header.Get("X-Request-Id") == "" {
		t.Errorf("%s %s: the response has no X-Request-Id", method, path)
	}
	return r
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

// object is a JSON object.
type object = map[string]any

// fromGit is a valid request to create a deployment from a repository.
func fromGit(name string) object {
	return object{
		"name": name, "source": "github", "secrets": []any{},
		"source_config":          object{"repo_url": "https://git.test/team/agent", "deployment_type": "dev", "build_on_push": false},
		"source_revision_config": object{"repo_ref": "main", "framework_config_path": "framework.json"},
	}
}

// fromImage is a valid request to create a deployment from an image.
func fromImage(name string) object {
	return object{
		"name": name, "source": "external_docker", "secrets": []any{},
		"source_config":          object{"resource_spec": object{"cpu": 1}},
		"source_revision_config": object{"image_uri": "registry.test/agent:1"},
	}
}

// create creates a deployment and returns its path and the answer.
func (f *fixture) create(t *testing.T, body object) (path string, created response) {
	t.Helper()
	created = f.call(t, "POST", "/v2/deployments", body)
	wantStatus(t, created, http.StatusCreated)
	return "/v2/deployments/" + created.id("id"), created
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

// wantNothing checks that the workspace has no deployments and that no workflow was started.
func (f *fixture) wantNothing(t *testing.T) {
	t.Helper()
	page, err := f.deployments.Search(t.Context(), f.own.workspace, deployment.Filter{}, record.Window{Limit: 10})
	found := page.Items
	if err != nil || len(found) != 0 || f.engine.starts.Load() != 0 {
		t.Errorf("%d deployments were created (%v), %d workflows started; want none", len(found), err, f.engine.starts.Load())
	}
}

// deploy makes a deployment's first revision the active one, as a rollout does.
func (f *fixture) deploy(t *testing.T, deploymentID string) {
	t.Helper()
	f.rollOut(t, deploymentID, f.deployments.Promote)
}

// rollOut takes the revision that holds the slot to DEPLOYING, and then to the state of the
// last step.
func (f *fixture) rollOut(t *testing.T, deploymentID string, last func(context.Context, deployment.Deployment, revision.Revision) error) {
	t.Helper()
	to := func(status revision.Status) func(context.Context, deployment.Deployment, revision.Revision) error {
		return func(ctx context.Context, d deployment.Deployment, r revision.Revision) error {
			return f.deployments.Provisioned(ctx, d, r.Change(clock.System(), status))
		}
	}
	ref := deployment.Ref{Workspace: f.own.workspace, Deployment: deploymentID}
	for _, step := range []func(context.Context, deployment.Deployment, revision.Revision) error{to(revision.AwaitingDeploy), to(revision.Deploying), last} {
		d, err := f.deployments.Get(t.Context(), ref)
		check.Must(t, err)
		_, r, err := f.deployments.GetRevision(t.Context(), ref.Revision(d.Slot))
		check.Must(t, err)
		check.Must(t, step(t.Context(), d, r))
	}
}
