package controlplane_test

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
	"github.com/slipway-run/slipway/internal/tenant/authservice/oauthtest"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// authFixture is a control plane with an Auth Service, a provider and a log.
type authFixture struct {
	*fixture
	answers *fixtures.Mortal
	service *authservice.Service
	oauth   *oauthtest.Server
	log     *check.Log
}

// callbackBase is the address of the control plane that the clients use.
const callbackBase = "https://slipway.test"

func setUpAuth(t *testing.T, change ...func(*controlplane.Config)) *authFixture {
	t.Helper()
	f := &authFixture{oauth: oauthtest.New(t, callbackBase), log: &check.Log{}}
	f.fixture = setUpWith(t, func(store *deployment.Config, config *controlplane.Config) {
		store.Log = slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		f.service = authservice.New(authservice.Config{
			Table: store.Table, Sealer: store.Sealer, Now: clock.System, Log: store.Log, Private: outbound.Everywhere,
		})
		f.answers = &fixtures.Mortal{Table: store.Table}
		config.Answers = idempotency.NewStore(f.answers, store.Sealer, clock.System)
		config.AuthService, config.BaseURL = f.service, func(context.Context) string { return callbackBase }
		for _, c := range change {
			c(config)
		}
	})
	return f
}

// newProvider is a valid request to create a provider.
func (f *authFixture) newProvider(id string) object {
	return object{
		"provider_id": id, "name": "Calendar", "client_id": oauthtest.ClientID, "client_secret": oauthtest.ClientSecret,
		"auth_url": f.oauth.URL + "/authorize", "token_url": f.oauth.URL + "/token", "revocation_url": f.oauth.URL + "/revoke", "uses_pkce": true,
	}
}

// stage holds the resources for the tests of operations: a provider, a token of ada's that
// weather is connected to, and a request that has ended.
type stage struct {
	*authFixture
	token, auth, connection, pending, state string
	// deployment is the path of a deployment that some tests make.
	deployment string
}

func (f *authFixture) stage(t *testing.T) *stage {
	t.Helper()
	s := &stage{authFixture: f}
	wantStatus(t, f.call(t, "POST", "/v2/auth/providers", f.newProvider("calendar")), http.StatusOK)
	asked := f.call(t, "POST", "/v2/auth/authenticate", object{"provider": "calendar", "scopes": []any{"read"}, "user_id": "ada"})
	wantStatus(t, asked, http.StatusOK)
	s.auth = asked.id("auth_id")
	back := f.oauth.Consent(t, asked.id("url"))
	if page := f.agree(t, "/v2/auth/callback/calendar?"+back.Encode()); page.status != http.StatusOK {
		t.Fatalf("the callback answered %+v", page)
	}
	list := f.call(t, "GET", "/v2/auth/tokens?user_id=ada", nil)
	tokens, _ := list.body.([]any)
	if len(tokens) != 1 {
		t.Fatalf("got tokens %s", list.text)
	}
	s.token, _ = tokens[0].(object)["id"].(string)
	connected := f.call(t, "POST", "/v2/auth/agents/weather/connections", object{"oauth_token_id": s.token, "user_id": "ada"})
	wantStatus(t, connected, http.StatusCreated)
	s.connection = connected.id("id")
	again := f.call(t, "POST", "/v2/auth/authenticate", object{"provider": "calendar", "scopes": []any{"read"}, "user_id": "ada", "force_new": true})
	wantStatus(t, again, http.StatusOK)
	s.pending, s.state = again.id("auth_id"), again.id("url")
	return s
}

// fill puts the ids of the stage into a path or body.
func (s *stage) fill(text string) string {
	return strings.NewReplacer(
		"{provider_id}", "calendar", "{token_id}", s.token, "{auth_id}", s.auth, "{connection_id}", s.connection, "{agent_id}", "weather",
	).Replace(text)
}

// authOperation describes how the tests exercise one operation.
type authOperation struct {
	// path is the path of the operation with a query, if it needs a query; "" is the
	// operation's own path.
	path string
	// public operations take no credentials, and answer with a page.
	public bool
	body   func(t *testing.T, s *stage) any
	status int
	shape  valueShape
	// verb is the verb of the required permission, if it differs from the method's verb.
	verb workspace.Verb
	// missing is the text of a 404 for an unknown id.
	missing string
}

func without(*testing.T, *stage) any { return nil }

func sends(body object) func(*testing.T, *stage) any {
	return func(*testing.T, *stage) any { return body }
}

// authOperations has an entry for every operation of the Auth Service.
var authOperations = map[string]authOperation{
	"GET /v2/auth/providers": {body: without, status: http.StatusOK, shape: listOf(providerShape)},
	"POST /v2/auth/providers": {
		body: func(_ *testing.T, s *stage) any { return s.newProvider("another") }, status: http.StatusOK, shape: providerShape,
	},
	"POST /v2/auth/providers/mcp-discover": {
		body: func(_ *testing.T, s *stage) any {
			return object{"provider_id": "tickets", "name": "Tickets", "mcp_server_url": s.oauth.URL + "/mcp"}
		},
		status: http.StatusOK, shape: providerShape,
	},
	"GET /v2/auth/providers/{provider_id}": {body: without, status: http.StatusOK, shape: providerShape, missing: "Auth provider ID nobody not found."},
	"PATCH /v2/auth/providers/{provider_id}": {
		body: sends(object{"name": "Other"}), status: http.StatusOK, shape: providerShape, missing: "Auth provider ID nobody not found.",
	},
	"DELETE /v2/auth/providers/{provider_id}": {
		body: without, status: http.StatusOK, shape: members(map[string]valueShape{"message": text}), missing: "Auth provider ID nobody not found.",
	},
	"POST /v2/auth/authenticate": {
		body:   sends(object{"provider": "calendar", "scopes": []any{"read"}, "user_id": "ada"}),
		status: http.StatusOK, shape: authenticateShape,
	},
	"GET /v2/auth/wait/{auth_id}":                {path: "/v2/auth/wait/{auth_id}?timeout=0", body: without, status: http.StatusOK, shape: waitShape, verb: workspace.Create},
	"GET /v2/auth/callback/{provider_id}":        {public: true, body: without, status: http.StatusBadRequest},
	"GET /v2/auth/setup/{provider_id}":           {public: true, body: without, status: http.StatusOK},
	"POST /v2/auth/setup/{provider_id}":          {public: true, body: without, status: http.StatusBadRequest},
	"POST /v2/auth/callback/{provider_id}":       {body: finishing, status: http.StatusOK, shape: finishShape},
	"GET /v2/auth/tokens":                        {path: "/v2/auth/tokens?user_id=ada", body: without, status: http.StatusOK, shape: listOf(tokenShape)},
	"DELETE /v2/auth/tokens":                     {path: "/v2/auth/tokens?user_id=ada&provider_id=calendar", body: without, status: http.StatusOK, shape: deletedTokensShape},
	"GET /v2/auth/tokens/exists":                 {path: "/v2/auth/tokens/exists?user_id=ada&provider_id=calendar", body: without, status: http.StatusOK, shape: hasTokenShape},
	"GET /v2/auth/tokens/workspace/slack/exists": {body: without, status: http.StatusOK, shape: hasTokenShape},
	"DELETE /v2/auth/tokens/workspace/slack":     {body: without, status: http.StatusOK, shape: deletedTokensShape},
	"POST /v2/auth/tokens/import": {
		body:   sends(object{"provider_id": "calendar", "access_token": "imported-secret", "user_id": "ada"}),
		status: http.StatusOK, shape: members(map[string]valueShape{"token_id": uuid}),
	},
	"DELETE /v2/auth/tokens/{token_id}": {
		path: "/v2/auth/tokens/{token_id}?user_id=ada", body: without, status: http.StatusNoContent, shape: empty,
		missing: "Token ID " + unknownID + " not found.",
	},
	"PATCH /v2/auth/tokens/{token_id}/metadata": {
		path: "/v2/auth/tokens/{token_id}/metadata?user_id=ada", body: sends(object{"provider_account_label": "Work"}), status: http.StatusOK, shape: tokenShape,
		missing: "Token ID " + unknownID + " not found.",
	},
	"GET /v2/auth/agents/{agent_id}/connections": {
		body: without, status: http.StatusOK, shape: members(map[string]valueShape{"data": listOf(connectionShape)}),
	},
	"POST /v2/auth/agents/{agent_id}/connections": {
		path:   "/v2/auth/agents/clock/connections",
		body:   func(_ *testing.T, s *stage) any { return object{"oauth_token_id": s.token, "user_id": "ada"} },
		status: http.StatusCreated, shape: connectionShape,
	},
	"DELETE /v2/auth/agents/{agent_id}/connections/{connection_id}": {
		body: without, status: http.StatusNoContent, shape: empty, missing: "Connection ID " + unknownID + " not found.",
	},
	"GET /v2/auth/token-events": {path: "/v2/auth/token-events?user_id=ada", body: without, status: http.StatusOK, shape: listOf(eventShape)},
}

// finishing is the body that ends the pending request.
func finishing(t *testing.T, s *stage) any {
	back := s.oauth.Consent(t, s.state)
	return object{"code": back.Get("code"), "state": back.Get("state")}
}

// The field tables of the Auth Service.
var (
	providerShape = members(map[string]valueShape{
		"id": uuid, "organization_id": uuid, "provider_id": text, "name": text, "client_id": text, "auth_url": text, "token_url": text, "uses_pkce": boolean,
		"code_challenge_method": text, "provider_type": orNull(text), "mcp_server_url": orNull(text), "is_dynamic_client": boolean,
		"token_endpoint_auth_method": oneOf("none client_secret_basic client_secret_post"), "revocation_url": orNull(text),
		"created_at": dateTime, "updated_at": dateTime,
	})
	authenticateShape = members(map[string]valueShape{
		"status": oneOf("completed pending connection_required token_expired"), "url": orNull(text), "auth_id": orNull(uuid), "token": orNull(text),
		"token_id": orNull(uuid), "user_id": orNull(text), "expires_at": orNull(dateTime), "metadata": orNull(anyObject),
	})
	waitShape = members(map[string]valueShape{
		"status": oneOf("completed pending timeout not_found"), "token": orNull(text), "user_id": orNull(text),
		"error": orNull(text), "error_description": orNull(text),
	})
	finishShape = members(map[string]valueShape{
		"status": oneOf("completed failed"), "auth_id": uuid, "provider_id": text, "error": orNull(text), "error_description": orNull(text),
	})
	tokenShape = members(map[string]valueShape{
		"id": uuid, "provider_id": text, "agent_id": orNull(text), "provider_account_label": orNull(text), "scopes": listOf(text),
		"expires_at": orNull(dateTime), "is_default": boolean, "status": oneOf("valid refreshing expired"), "metadata": orNull(anyObject),
		"created_at": dateTime, "updated_at": dateTime,
	})
	connectionShape = members(map[string]valueShape{
		"id": uuid, "agent_id": text, "oauth_token_id": uuid, "provider_id": text, "provider_account_label": orNull(text), "scopes": listOf(text),
		"expires_at": orNull(dateTime), "created_by": text, "created_at": dateTime,
	})
	eventShape = members(map[string]valueShape{
		"id": uuid, "event_type": text, "provider_id": text, "token_id": orNull(uuid), "agent_id": orNull(text), "reason": orNull(text), "created_at": dateTime,
	})
	hasTokenShape      = members(map[string]valueShape{"has_token": boolean})
	deletedTokensShape = members(map[string]valueShape{"message": text, "deleted": integer})
)

// at returns the method and path of an operation on the stage.
func (s *stage) at(name string) (method, path string) {
	method, path, _ = strings.Cut(name, " ")
	if o := authOperations[name]; o.path != "" {
		path = o.path
	}
	return method, s.fill(path)
}

func TestEveryOperationOfTheAuthServiceSucceeds(t *testing.T) {
	t.Parallel()
	rule(t, authShapes)
	for name, o := range authOperations {
		if o.public {
			continue
		}
		for _, base := range bases {
			t.Run(base+" "+name, func(t *testing.T) {
				t.Parallel()
				s := setUpAuth(t).stage(t)
				method, path := s.at(name)
				answer := s.call(t, method, base+path, o.body(t, s))
				wantStatus(t, answer, o.status)
				wantShape(t, answer, o.shape)
			})
		}
	}
}

// TestAttackStrangersAtTheAuthService calls all operations without credentials and with bad
// credentials, also with malformed bodies.
func TestAttackStrangersAtTheAuthService(t *testing.T) {
	t.Parallel()
	s := setUpAuth(t).stage(t)
	for name, o := range authOperations {
		if o.public {
			continue
		}
		for _, base := range bases {
			method, path := s.at(name)
			for _, headers := range []map[string]string{nil, {"X-Api-Key": "slw_guess"}, {"Authorization": "Bearer guess"}} {
				wantError(t, s.send(t, method, base+path, "{", headers), http.StatusUnauthorized)
			}
			wantError(t, s.send(t, method, base+path, nil, map[string]string{"X-Api-Key": s.own.key, "X-Tenant-Id": s.other.workspace}), http.StatusForbidden)
		}
	}
	if still := s.call(t, "GET", "/v2/auth/tokens/exists?user_id=ada&provider_id=calendar", nil); still.member("has_token") != true {
		t.Errorf("a refused request changed something: %s", still.text)
	}
}

// TestWhatTheAuthServiceDoesNotHaveIsNotFound asks for unknown ids, and as another workspace
// for ids that exist.
func TestWhatTheAuthServiceDoesNotHaveIsNotFound(t *testing.T) {
	t.Parallel()
	rule(t, authRules)
	s := setUpAuth(t).stage(t)
	for name, o := range authOperations {
		if o.missing == "" {
			continue
		}
		method, path := s.at(name)
		nothing := *s
		nothing.token, nothing.connection = unknownID, unknownID
		_, unknown := nothing.at(name)
		unknown = strings.Replace(unknown, "calendar", "nobody", 1)
		wantDetail(t, s.call(t, method, unknown, o.body(t, s)), http.StatusNotFound, o.missing)
		wantError(t, s.send(t, method, path, o.body(t, s), s.other.headers()), http.StatusNotFound)
		if strings.Contains(name, "{token_id}") {
			wantError(t, s.call(t, method, strings.Replace(path, "user_id=ada", "user_id=bob", 1), o.body(t, s)), http.StatusNotFound)
		}
	}
	other := s.other.headers()
	for _, path := range []string{"/v2/auth/providers", "/v2/auth/tokens?user_id=ada", "/v2/auth/token-events?user_id=ada"} {
		if answer := s.send(t, "GET", path, nil, other); string(answer.text) != "[]\n" {
			t.Errorf("another workspace sees %s at %s", answer.text, path)
		}
	}
	if answer := s.send(t, "GET", "/v2/auth/agents/weather/connections", nil, other); cmp.Diff([]any{}, answer.member("data")) != "" {
		t.Errorf("another workspace sees %s", answer.text)
	}
	waits := s.send(t, "GET", "/v2/auth/wait/"+s.auth+"?timeout=0", nil, other)
	if waits.member("status") != "not_found" || waits.member("token") != nil {
		t.Errorf("another workspace gets %s", waits.text)
	}
	for _, who := range []string{"ada", "bob"} {
		asks := s.send(t, "POST", "/v2/auth/authenticate", object{"provider": "calendar", "scopes": []any{}, "user_id": who}, other)
		wantError(t, asks, http.StatusNotFound)
	}
	finish := s.send(t, "POST", "/v2/auth/callback/calendar", finishing(t, s), other)
	wantError(t, finish, http.StatusBadRequest)
}

// TestRolesInTheAuthService calls every operation with a key of every role.
func TestRolesInTheAuthService(t *testing.T) {
	t.Parallel()
	rule(t, authRoles)
	verbs := map[string]workspace.Verb{"GET": workspace.Read, "POST": workspace.Create, "PATCH": workspace.Update, "DELETE": workspace.Delete}
	for _, role := range []workspace.Role{workspace.Admin, workspace.Editor, workspace.Viewer} {
		for name, o := range authOperations {
			if o.public {
				continue
			}
			t.Run(string(role)+" "+name, func(t *testing.T) {
				t.Parallel()
				s := setUpAuth(t).stage(t)
				method, path := s.at(name)
				verb := verbs[method]
				if o.verb != "" {
					verb = o.verb
				}
				allowed := map[workspace.Role][]workspace.Verb{
					workspace.Admin:  {workspace.Read, workspace.Create, workspace.Update, workspace.Delete},
					workspace.Editor: {workspace.Read, workspace.Create, workspace.Update},
					workspace.Viewer: {workspace.Read},
				}
				answer := s.send(t, method, path, o.body(t, s), s.issue(t, role).headers())
				if slices.Contains(allowed[role], verb) {
					wantStatus(t, answer, o.status)
					return
				}
				wantDetail(t, answer, http.StatusForbidden,
					`The credentials do not allow this: the role "`+string(role)+`" lacks the permission auth:`+string(verb)+".")
			})
		}
	}
}

// TestOtherMethodsOfTheAuthServiceAreNotAllowed leaves out the paths that another operation
// reads as an id.
func TestOtherMethodsOfTheAuthServiceAreNotAllowed(t *testing.T) {
	t.Parallel()
	s := setUpAuth(t).stage(t)
	allowed := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(authOperations)) {
		method, path, _ := strings.Cut(name, " ")
		allowed[s.fill(path)] = append(allowed[s.fill(path)], method)
	}
	for path, methods := range allowed {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			isID := path == "/v2/auth/tokens/exists" || path == "/v2/auth/tokens/import" || path == "/v2/auth/providers/mcp-discover"
			if slices.Contains(methods, method) || isID {
				continue
			}
			wantDetail(t, s.call(t, method, path, nil), http.StatusMethodNotAllowed, "Method Not Allowed")
		}
	}
}
