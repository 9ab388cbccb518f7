package controlplane_test

import (
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/control/integration/githubtest"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
)

// hubFixture is a control plane with a log and a GitHub App, at a GitHub that has an
// installation at acme.
type hubFixture struct {
	*authFixture
	hub *githubtest.Server
}

var (
	hubRepository = githubtest.Repository{ID: 11, Owner: "acme", Name: "agent", DefaultBranch: "main"}
	hubInstalled  = githubtest.Installation{ID: 77, Account: "acme", AccountID: 500, Repositories: []githubtest.Repository{hubRepository, {
		ID: 12, Owner: "acme", Name: "other", DefaultBranch: "trunk",
	}}}
	ada = githubtest.User{ID: 1, Login: "ada", Roles: map[string]string{"acme": "admin"}}
)

func setUpHub(t *testing.T) *hubFixture {
	t.Helper()
	f := &hubFixture{authFixture: &authFixture{log: &check.Log{}}, hub: githubtest.New(t, clock.System)}
	f.hub.Install(hubInstalled)
	f.fixture = setUpWith(t, func(store *deployment.Config, config *controlplane.Config) {
		store.Log = slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		config.Answers = idempotency.NewStore(store.Table, store.Sealer, clock.System)
		var err error
		config.Integrations, err = integration.New(integration.Config{Table: store.Table, Sealer: store.Sealer, Now: clock.System, Log: slog.New(slog.DiscardHandler), GitHub: &integration.App{
			ID: githubtest.AppID, Slug: githubtest.Slug, ClientID: githubtest.ClientID, ClientSecret: githubtest.ClientSecret,
			PrivateKey: githubtest.PrivateKey(), WebURL: f.hub.URL, APIURL: f.hub.APIURL(), Transport: f.hub.Client().Transport,
		}})
		check.Must(t, err)
	})
	return f
}

const callbackPath = "/v2/integrations/github/callback"

// link begins an installation, and returns the query with which GitHub sends the user's browser
// back.
func (f *hubFixture) link(t *testing.T, user githubtest.User) url.Values {
	t.Helper()
	begun := f.call(t, "POST", "/v2/integrations/github/installation-link", nil)
	wantStatus(t, begun, http.StatusOK)
	at, err := url.Parse(begun.id("install_url"))
	if err != nil || !strings.HasPrefix(begun.id("install_url"), f.hub.URL) {
		t.Fatalf("the link is %s (%v)", begun.text, err)
	}
	return url.Values{
		"state": {at.Query().Get("state")}, "code": {f.hub.Consent(user)}, "installation_id": {"77"}, "setup_action": {"install"},
	}
}

// install goes through the whole flow, and returns the id of the integration.
func (f *hubFixture) install(t *testing.T) string {
	t.Helper()
	back := f.link(t, ada)
	if page := f.browse(t, "POST", callbackPath+"?"+back.Encode(), "same-origin"); page.status != http.StatusOK {
		t.Fatalf("got %d %s", page.status, page.text)
	}
	list, _ := f.call(t, "GET", "/v1/integrations/github/install", nil).body.([]any)
	if len(list) != 1 {
		t.Fatalf("got %v", list)
	}
	return list[0].(object)["id"].(string)
}

func newCredential(host string) object {
	return object{"host": host, "user": "deploy", "token": gitToken}
}

const gitToken = "glpat-of-the-host"

// credential creates credentials for a git host.
func (f *fixture) credential(t *testing.T, host string) response {
	t.Helper()
	made := f.call(t, "POST", "/v2/integrations/git/credentials", newCredential(host))
	wantStatus(t, made, http.StatusCreated)
	return made
}

// hubStage holds the resources for the tests of operations: an installation, credentials and a
// deployment.
type hubStage struct {
	*hubFixture
	installation, credentials, deployment string
}

func (f *hubFixture) stage(t *testing.T) *hubStage {
	t.Helper()
	s := &hubStage{hubFixture: f, installation: f.install(t), credentials: f.credential(t, "git.test").id("id")}
	_, created := f.create(t, fromGit("weather"))
	s.deployment = created.id("id")
	return s
}

// at returns the method and path of an operation on the stage.
func (s *hubStage) at(name string) (method, path string) {
	method, path, _ = strings.Cut(name, " ")
	integrationID := s.installation
	if strings.Contains(path, "/git/") {
		integrationID = s.credentials
	}
	return method, strings.NewReplacer(
		"{integration_id}", integrationID, "{deployment_id}", s.deployment, "{workspace_id}", s.own.workspace,
	).Replace(path)
}

// integrationOperation describes how the tests exercise one operation. Operations without a
// shape are for browsers and hosts, and take no credentials.
type integrationOperation struct {
	body   object
	status int
	shape  valueShape
	verb   workspace.Verb
}

var (
	installationShape  = members(map[string]valueShape{"id": uuid, "installation_id": integer, "name": text})
	repositoryShape    = members(map[string]valueShape{"host_integration_id": uuid, "id": integer, "name": text, "owner": text, "url": text, "default_branch": text})
	gitCredentialShape = members(map[string]valueShape{"id": uuid, "host": text, "user": text, "created_at": dateTime, "updated_at": dateTime})
	// integrationOperations has an entry for every operation of integrations and pushes.
	integrationOperations = map[string]integrationOperation{
		"GET /v1/integrations/github/install":                            {status: http.StatusOK, shape: listOf(installationShape), verb: workspace.Read},
		"GET /v1/integrations/github/{integration_id}/repos":             {status: http.StatusOK, shape: listOf(repositoryShape), verb: workspace.Read},
		"POST /v1/integrations/github/webhook":                           {status: http.StatusUnauthorized},
		"GET /v2/integrations/github/installations":                      {status: http.StatusOK, shape: itemsOf(installationShape), verb: workspace.Read},
		"GET " + installationPath:                                        {status: http.StatusOK, shape: installationShape, verb: workspace.Read},
		"DELETE " + installationPath:                                     {status: http.StatusNoContent, shape: empty, verb: workspace.Delete},
		"GET " + installationPath + "/repositories":                      {status: http.StatusOK, shape: itemsOf(repositoryShape), verb: workspace.Read},
		"POST /v2/integrations/github/installation-link":                 {status: http.StatusOK, shape: members(map[string]valueShape{"install_url": text, "oauth_reuse_url": isNull}), verb: workspace.Create},
		"GET /v1/integrations/forge/github/install":                      {status: http.StatusOK, shape: listOf(installationShape), verb: workspace.Read},
		"GET /v1/integrations/forge/github/{integration_id}/repos":       {status: http.StatusOK, shape: listOf(repositoryShape), verb: workspace.Read},
		"GET /v2/integrations/forge-github/installations":                {status: http.StatusOK, shape: itemsOf(installationShape), verb: workspace.Read},
		"GET " + forgePath:                                               {status: http.StatusOK, shape: installationShape, verb: workspace.Read},
		"DELETE " + forgePath:                                            {status: http.StatusNoContent, shape: empty, verb: workspace.Delete},
		"GET " + forgePath + "/repositories":                             {status: http.StatusOK, shape: itemsOf(repositoryShape), verb: workspace.Read},
		"POST /v2/integrations/forge-github/installation-link":           {status: http.StatusOK, shape: members(map[string]valueShape{"install_url": text, "oauth_reuse_url": isNull}), verb: workspace.Create},
		"GET " + callbackPath:                                            {status: http.StatusBadRequest},
		"POST " + callbackPath:                                           {status: http.StatusBadRequest},
		"GET /v2/integrations/git/credentials":                           {status: http.StatusOK, shape: itemsOf(gitCredentialShape), verb: workspace.Read},
		"POST /v2/integrations/git/credentials":                          {body: newCredential("other.test"), status: http.StatusCreated, shape: gitCredentialShape, verb: workspace.Create},
		"GET " + credentialPath:                                          {status: http.StatusOK, shape: gitCredentialShape, verb: workspace.Read},
		"PATCH " + credentialPath:                                        {body: object{"user": "other"}, status: http.StatusOK, shape: gitCredentialShape, verb: workspace.Update},
		"DELETE " + credentialPath:                                       {status: http.StatusNoContent, shape: empty, verb: workspace.Delete},
		"GET /v2/deployments/{deployment_id}/push-hook":                  {status: http.StatusOK, shape: members(map[string]valueShape{"url": text, "secret": text}), verb: workspace.Update},
		"POST /v2/integrations/git/hooks/{workspace_id}/{deployment_id}": {status: http.StatusUnauthorized},
	}
)

const (
	installationPath = "/v2/integrations/github/installations/{integration_id}"
	forgePath        = "/v2/integrations/forge-github/installations/{integration_id}"
	credentialPath   = "/v2/integrations/git/credentials/{integration_id}"
)

func itemsOf(of valueShape) valueShape {
	return members(map[string]valueShape{"items": listOf(of), "next_cursor": orNull(text)})
}

func isNull(value any) string {
	if value != nil {
		return "it is not null"
	}
	return ""
}

func (o integrationOperation) sent() any {
	if o.body == nil {
		return nil
	}
	return o.body
}

func TestEveryOperationOfIntegrationsSucceeds(t *testing.T) {
	t.Parallel()
	rule(t, integrationShapes)
	rule(t, integrationForge)
	for name, o := range integrationOperations {
		for _, base := range bases {
			t.Run(base+" "+name, func(t *testing.T) {
				t.Parallel()
				s := setUpHub(t).stage(t)
				method, path := s.at(name)
				if o.shape == nil {
					if got := s.browse(t, method, base+path, ""); got.status != o.status {
						t.Errorf("got %d %s, want %d", got.status, got.text, o.status)
					}
					return
				}
				answer := s.call(t, method, base+path, o.sent())
				wantStatus(t, answer, o.status)
				wantShape(t, answer, o.shape)
			})
		}
	}
}

func TestRolesOfIntegrations(t *testing.T) {
	t.Parallel()
	rule(t, "Roles: what a role lacks is a 403.")
	rule(t, integrationRoles)
	may := map[workspace.Role][]workspace.Verb{
		workspace.Admin:  {workspace.Read, workspace.Create, workspace.Update, workspace.Delete},
		workspace.Editor: {workspace.Read, workspace.Create, workspace.Update}, workspace.Viewer: {workspace.Read},
	}
	for role, allowed := range may {
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			s := setUpHub(t).stage(t)
			caller := s.issue(t, role)
			for name := range exercised() {
				o, mine := integrationOperations[name]
				if !mine || o.shape == nil || o.verb == workspace.Delete {
					continue
				}
				s.wantAllowed(t, name, o, caller, slices.Contains(allowed, o.verb), role)
			}
			for name, o := range integrationOperations {
				if o.verb == workspace.Delete {
					s := setUpHub(t).stage(t) // an installation has two names
					s.wantAllowed(t, name, o, s.issue(t, role), slices.Contains(allowed, o.verb), role)
				}
			}
		})
	}
}

func (s *hubStage) wantAllowed(t *testing.T, name string, o integrationOperation, caller tenant, allowed bool, role workspace.Role) {
	t.Helper()
	method, path := s.at(name)
	answer := s.send(t, method, path, o.sent(), caller.headers())
	if allowed {
		wantStatus(t, answer, o.status)
		return
	}
	resource := "integrations"
	if strings.HasSuffix(path, "/push-hook") {
		resource = "deployments"
	}
	wantDetail(t, answer, http.StatusForbidden,
		`The credentials do not allow this: the role "`+string(role)+`" lacks the permission `+resource+":"+string(o.verb)+".")
}

// TestIntegrationsOfOthers calls every operation without credentials, for integrations of
// another workspace, and for integrations that do not exist.
func TestIntegrationsOfOthers(t *testing.T) {
	t.Parallel()
	rule(t, "Missing or bad credentials are a 401, a tenant that the key does not belong to is a 403, before anything else is looked at.")
	rule(t, "What belongs to another workspace is a 404, as what does not exist.")
	rule(t, integrationOthers)
	s := setUpHub(t).stage(t)
	for name, o := range integrationOperations {
		if o.shape == nil {
			continue
		}
		method, path := s.at(name)
		wantDetail(t, s.send(t, method, path, o.sent(), nil), http.StatusUnauthorized, "The header X-Api-Key is missing.")
		wantDetail(t, s.send(t, method, path, "{", map[string]string{"X-Api-Key": "slw_guess"}), http.StatusUnauthorized, "The API key is not valid.")
		own, what, parameter := s.installation, "Integration ID ", "path.integration_id"
		switch {
		case strings.Contains(name, "{deployment_id}"):
			own, what, parameter = s.deployment, "Deployment ID ", "path.deployment_id"
		case !strings.Contains(name, "{integration_id}"):
			continue
		case strings.Contains(name, "/git/"):
			own = s.credentials
		}
		wantDetail(t, s.send(t, method, path, o.sent(), s.other.headers()), http.StatusNotFound, what+own+" not found.")
		unknown := strings.Replace(path, own, unknownID, 1)
		wantDetail(t, s.call(t, method, unknown, o.sent()), http.StatusNotFound, what+unknownID+" not found.")
		malformed := s.call(t, method, strings.Replace(path, own, "x", 1), o.sent())
		if diff := cmp.Diff([]problem{{parameter, "uuid_parsing"}}, problems(t, malformed)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, path := range []string{"/v1/integrations/github/install", "/v2/integrations/github/installations", "/v2/integrations/git/credentials"} {
		if list := s.send(t, "GET", path, nil, s.other.headers()); strings.Contains(string(list.text), `"id"`) {
			t.Errorf("another workspace lists %s", list.text)
		}
	}
}
