package lambdahost_test

import (
	"net/http"
	"testing"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
)

// TestWhoTheAuthorizerLetIn reads the authorizer's result, and ignores the client's claims.
func TestWhoTheAuthorizerLetIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event       string
		key, tenant fault.Kind
	}{
		"let in":          {``, "", ""},
		"its tenant":      {`{"multiValueHeaders": {"X-Tenant-Id": ["` + workspace + `"]}}`, "", ""},
		"another tenant":  {`{"multiValueHeaders": {"X-Tenant-Id": ["` + stranger + `"]}}`, "", fault.Forbidden},
		"no authorizer":   {`{"requestContext": {"authorizer": null}}`, fault.Unauthorized, fault.Unauthorized},
		"a key alone":     {`{"requestContext": {"authorizer": null}, "multiValueHeaders": {"X-Api-Key": ["slw_x"]}}`, fault.Unauthorized, fault.Unauthorized},
		"not a string":    {`{"requestContext": {"authorizer": {"workspace": 7}}}`, fault.Unauthorized, fault.Unauthorized},
		"empty":           {`{"requestContext": {"authorizer": {"workspace": ""}}}`, fault.Unauthorized, fault.Unauthorized},
		"other principal": {`{"requestContext": {"authorizer": {"workspace": null}}}`, fault.Unauthorized, fault.Unauthorized},
	} {
		log, _ := newLog()
		called := false
		_, err := lambdahost.Buffered(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			called = true
			principal, err := lambdahost.Gateway{}.Key(r)
			wantWorkspace(t, name+": Key", principal.Workspace, err, c.key)
			principal, err = auth.Tenant(lambdahost.Gateway{}, r)
			wantWorkspace(t, name+": Tenant", principal.Workspace, err, c.tenant)
		}), log)(t.Context(), event(t, c.event))
		if err != nil || !called {
			t.Errorf("%s: the handler was not called (%v)", name, err)
		}
	}
}

func wantWorkspace(t *testing.T, what, got string, err error, want fault.Kind) {
	t.Helper()
	if want == "" && (err != nil || got != workspace) {
		t.Errorf("%s: got %q (%v), want the workspace", what, got, err)
	}
	if want != "" && (!fault.Is(err, want) || got != "") {
		t.Errorf("%s: got %q (%v), want a fault of kind %s", what, got, err, want)
	}
}

// TestAgentURL finds the address that a client called, with all kinds of gateways.
func TestAgentURL(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ base, event, want string }{
		"the API's own domain": {"", ``, "https://api.test/v"},
		"the root of the stage": {
			"", `{"requestContext": {"path": "/v"}}`, "https://api.test/v",
		},
		"a domain of one's own":         {"", `{"path": "/v2/deployments", "requestContext": {"path": "/v2/deployments"}}`, "https://api.test"},
		"a gateway that says no path":   {"", `{"requestContext": {"path": ""}}`, "https://api.test/v"},
		"a gateway without a stage":     {"", `{"requestContext": {"stage": "", "path": "/echo"}}`, "https://api.test"},
		"a local gateway":               {"", `{"multiValueHeaders": {"x-forwarded-proto": ["http"]}, "requestContext": {"path": "/{x}", "domainName": "127.0.0.1:3000"}}`, "http://127.0.0.1:3000"},
		"a local gateway with no name":  {"", `{"multiValueHeaders": {"host": ["localhost:3000"]}, "requestContext": {"path": "/echo", "domainName": ""}}`, "https://localhost:3000"},
		"an odd protocol":               {"", `{"multiValueHeaders": {"X-Forwarded-Proto": ["javascript"]}}`, "https://api.test/v"},
		"a configured address":          {"https://slipway.test", ``, "https://slipway.test"},
		"a configured address, a slash": {"https://slipway.test/", ``, "https://slipway.test"},
	} {
		log, _ := newLog()
		var got string
		_, err := lambdahost.Buffered(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got = lambdahost.Gateway{}.AgentURL(c.base)(r.Context(), "id")
		}), log)(t.Context(), event(t, c.event))
		if want := c.want + "/d/id"; err != nil || got != want {
			t.Errorf("%s: got %s (%v), want %s", name, got, err, want)
		}
	}
}
