package controlplane_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRequestsOfTheWrongShapeToTheAuthService breaks one member at a time.
func TestRequestsOfTheWrongShapeToTheAuthService(t *testing.T) {
	t.Parallel()
	rule(t, authShape)
	s := setUpAuth(t).stage(t)
	provider := s.newProvider("another")
	asking := object{"provider": "calendar", "scopes": []any{"read"}, "user_id": "ada"}
	imported := object{"provider_id": "calendar", "access_token": "x", "user_id": "ada"}
	for name, c := range map[string]struct {
		request string
		body    any
		want    problem
	}{
		"no provider":           {"POST /v2/auth/providers", nil, problem{"body", "missing"}},
		"not JSON":              {"POST /v2/auth/providers", "{", problem{"body.1", "json_invalid"}},
		"an id with a slash":    {"POST /v2/auth/providers", with(provider, "provider_id", "a/b"), problem{"body.provider_id", "string_pattern_mismatch"}},
		"a long id":             {"POST /v2/auth/providers", with(provider, "provider_id", strings.Repeat("a", 129)), problem{"body.provider_id", "string_too_long"}},
		"an empty name":         {"POST /v2/auth/providers", with(provider, "name", ""), problem{"body.name", "string_too_short"}},
		"a number for a URL":    {"POST /v2/auth/providers", with(provider, "auth_url", 1), problem{"body.auth_url", "string_type"}},
		"text for uses_pkce":    {"POST /v2/auth/providers", with(provider, "uses_pkce", "maybe"), problem{"body.uses_pkce", "bool_type"}},
		"an unknown type":       {"POST /v2/auth/providers", with(provider, "provider_type", "myspace"), problem{"body.provider_type", "enum"}},
		"an unknown method":     {"POST /v2/auth/providers", with(provider, "token_endpoint_auth_method", "tls"), problem{"body.token_endpoint_auth_method", "enum"}},
		"a patch with a number": {"PATCH /v2/auth/providers/calendar", object{"name": 1}, problem{"body.name", "string_type"}},
		"an MCP server without": {"POST /v2/auth/providers/mcp-discover", object{"provider_id": "a", "name": "b"}, problem{"body.mcp_server_url", "missing"}},
		"no scopes":             {"POST /v2/auth/authenticate", object{"provider": "calendar"}, problem{"body.scopes", "missing"}},
		"text for scopes":       {"POST /v2/auth/authenticate", with(asking, "scopes", "read"), problem{"body.scopes", "list_type"}},
		"an empty scope":        {"POST /v2/auth/authenticate", with(asking, "scopes", []any{""}), problem{"body.scopes.0", "string_too_short"}},
		"an empty user":         {"POST /v2/auth/authenticate", with(asking, "user_id", ""), problem{"body.user_id", "string_too_short"}},
		"a token_id of no kind": {"POST /v2/auth/authenticate", with(asking, "token_id", "x"), problem{"body.token_id", "uuid_parsing"}},
		"a timeout of no kind":  {"GET /v2/auth/wait/x?timeout=soon", nil, problem{"query.timeout", "int_parsing"}},
		"a negative timeout":    {"GET /v2/auth/wait/x?timeout=-1", nil, problem{"query.timeout", "greater_than_equal"}},
		"a callback, no code":   {"POST /v2/auth/callback/calendar", object{"state": "x"}, problem{"body.code", "missing"}},
		"a callback, no state":  {"POST /v2/auth/callback/calendar", object{"code": "x"}, problem{"body.state", "missing"}},
		"a list, empty user":    {"GET /v2/auth/tokens?user_id=", nil, problem{"query.user_id", "string_too_short"}},
		"which provider":        {"DELETE /v2/auth/tokens?user_id=ada", nil, problem{"query.provider_id", "missing"}},
		"whether of which":      {"GET /v2/auth/tokens/exists?user_id=ada", nil, problem{"query.provider_id", "missing"}},
		"an import without":     {"POST /v2/auth/tokens/import", object{"provider_id": "calendar"}, problem{"body.access_token", "missing"}},
		"metadata that is text": {"POST /v2/auth/tokens/import", with(imported, "metadata", "x"), problem{"body.metadata", "dict_type"}},
		"a life before now":     {"POST /v2/auth/tokens/import", with(imported, "expires_in_seconds", -1), problem{"body.expires_in_seconds", "greater_than_equal"}},
		"a label of a number":   {"PATCH /v2/auth/tokens/x/metadata", object{"provider_account_label": 1}, problem{"body.provider_account_label", "string_type"}},
		"a connection without":  {"POST /v2/auth/agents/weather/connections", object{}, problem{"body.oauth_token_id", "missing"}},
		"a very long agent":     {"GET /v2/auth/agents/" + strings.Repeat("a", 257) + "/connections", nil, problem{"path.agent_id", "string_too_long"}},
		"too many events":       {"GET /v2/auth/token-events?limit=201", nil, problem{"query.limit", "less_than_equal"}},
		"no events":             {"GET /v2/auth/token-events?limit=0", nil, problem{"query.limit", "greater_than_equal"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			method, path, _ := strings.Cut(c.request, " ")
			if diff := cmp.Diff([]problem{c.want}, problems(t, s.call(t, method, path, c.body))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRulesOfTheAuthService breaks the rules between members, and the rules of the domain.
func TestRulesOfTheAuthService(t *testing.T) {
	t.Parallel()
	rule(t, authRules)
	s := setUpAuth(t).stage(t)
	provider := s.newProvider("another")
	for name, c := range map[string]struct {
		request string
		body    any
		status  int
	}{
		"a URL without TLS":        {"POST /v2/auth/providers", with(provider, "auth_url", "http://accounts.test/a"), http.StatusBadRequest},
		"a plain challenge":        {"POST /v2/auth/providers", with(provider, "code_challenge_method", "plain"), http.StatusBadRequest},
		"no secret and no PKCE":    {"POST /v2/auth/providers", with(with(provider, "client_secret", nil), "uses_pkce", false), http.StatusBadRequest},
		"a name that is taken":     {"POST /v2/auth/providers", s.newProvider("calendar"), http.StatusConflict},
		"an MCP server that isn't": {"POST /v2/auth/providers/mcp-discover", object{"provider_id": "b", "name": "b", "mcp_server_url": "ftp://x"}, http.StatusBadRequest},
		"a patch that breaks one":  {"PATCH /v2/auth/providers/calendar", object{"token_url": "x"}, http.StatusBadRequest},
		"a scope with a space":     {"POST /v2/auth/authenticate", object{"provider": "calendar", "scopes": []any{"a b"}, "user_id": "ada"}, http.StatusBadRequest},
		"an unknown provider":      {"POST /v2/auth/authenticate", object{"provider": "x", "scopes": []any{}, "user_id": "ada"}, http.StatusNotFound},
		"an unknown token":         {"POST /v2/auth/authenticate", object{"provider": "calendar", "scopes": []any{}, "user_id": "ada", "token_id": unknownID}, http.StatusNotFound},
		"a state that is none":     {"POST /v2/auth/callback/calendar", object{"code": "x", "state": "y"}, http.StatusBadRequest},
		"connected already":        {"POST /v2/auth/agents/weather/connections", object{"oauth_token_id": s.token, "user_id": "ada"}, http.StatusConflict},
		"another one's token":      {"POST /v2/auth/agents/clock/connections", object{"oauth_token_id": s.token, "user_id": "bob"}, http.StatusNotFound},
		"an import to nowhere":     {"POST /v2/auth/tokens/import", object{"provider_id": "x", "access_token": "y", "user_id": "ada"}, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			method, path, _ := strings.Cut(c.request, " ")
			wantError(t, s.call(t, method, path, c.body), c.status)
		})
	}
}

// TestNullMembersSayNothing sends null wherever it is allowed.
func TestNullMembersSayNothing(t *testing.T) {
	t.Parallel()
	rule(t, authNull)
	s := setUpAuth(t).stage(t)
	provider := s.newProvider("another")
	for _, name := range []string{"provider_type", "token_endpoint_auth_method", "revocation_url", "code_challenge_method"} {
		provider = with(provider, name, nil)
	}
	created := s.call(t, "POST", "/v2/auth/providers", provider)
	wantStatus(t, created, http.StatusOK)
	if created.member("token_endpoint_auth_method") != "client_secret_post" || created.member("code_challenge_method") != "S256" {
		t.Errorf("got %s", created.text)
	}
	same := object{}
	for _, name := range []string{"name", "client_id", "client_secret", "auth_url", "token_url", "uses_pkce", "provider_type", "code_challenge_method"} {
		same[name] = nil
	}
	patched := s.call(t, "PATCH", "/v2/auth/providers/another", same)
	if diff := cmp.Diff(created.body, with(patched.body.(object), "updated_at", created.member("updated_at"))); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	renamed := s.call(t, "PATCH", "/v2/auth/providers/another", object{"provider_id": "renamed", "name": "Renamed"})
	wantDetail(t, renamed, http.StatusBadRequest, "provider_id cannot be changed.")
	patched = s.call(t, "PATCH", "/v2/auth/providers/another", object{"provider_id": "another"})
	if diff := cmp.Diff(created.body, with(patched.body.(object), "updated_at", created.member("updated_at"))); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	label := s.call(t, "PATCH", "/v2/auth/tokens/"+s.token+"/metadata?user_id=ada", object{"metadata": object{"a": "b"}})
	null := s.call(t, "PATCH", "/v2/auth/tokens/"+s.token+"/metadata?user_id=ada", object{"metadata": nil, "is_default": nil, "provider_account_label": nil})
	if diff := cmp.Diff(label.member("metadata"), null.member("metadata")); diff != "" || label.member("metadata") == nil {
		t.Errorf("(-before +after):\n%s", diff)
	}
	wantStatus(t, s.call(t, "POST", "/v2/auth/tokens/import", object{
		"provider_id": "calendar", "access_token": "x", "refresh_token": nil, "expires_in_seconds": nil, "scopes": nil, "metadata": nil, "agent_id": nil,
	}), http.StatusOK)
}

// TestTokensOfSlack covers the tokens of all users of a workspace, and no tokens of other
// providers.
func TestTokensOfSlack(t *testing.T) {
	t.Parallel()
	rule(t, authSlack)
	s := setUpAuth(t).stage(t)
	has := func(want bool) {
		t.Helper()
		if got := s.call(t, "GET", "/v2/auth/tokens/workspace/slack/exists", nil); got.member("has_token") != want {
			t.Errorf("got %s, want %t", got.text, want)
		}
	}
	has(false)
	wantStatus(t, s.call(t, "POST", "/v2/auth/providers", with(s.newProvider("slack-one"), "provider_type", "slack")), http.StatusOK)
	for _, user := range []string{"ada", "bob"} {
		wantStatus(t, s.call(t, "POST", "/v2/auth/tokens/import", object{"provider_id": "slack-one", "access_token": "x", "user_id": user}), http.StatusOK)
	}
	has(true)
	if got := s.call(t, "DELETE", "/v2/auth/tokens/workspace/slack", nil); got.member("message") != "Deleted tokens: 2." {
		t.Errorf("got %s", got.text)
	}
	has(false)
	if got := s.call(t, "GET", "/v2/auth/tokens/exists?provider_id=calendar&user_id=ada", nil); got.member("has_token") != true {
		t.Errorf("another provider's tokens are gone: %s", got.text)
	}
}
