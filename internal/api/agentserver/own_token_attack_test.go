package agentserver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// ofIssuer is the token of an administrator of each workspace but one, made by an issuer that the
// platform knows. ofUser is a token of a repository's own user, made by another issuer.
const (
	ofIssuer = "Bearer platform.admin.signature"
	ofUser   = "Bearer own.user.signature"
)

// members knows the token of the administrator, and asks another authenticator about other
// credentials.
type members struct{ auth.Authenticator }

func (m members) Key(r *http.Request) (workspace.Principal, error) {
	named := r.Header.Get(auth.HeaderTenant)
	switch {
	case r.Header.Get(auth.HeaderKey) != "" || r.Header.Get(auth.HeaderBearer) != ofIssuer:
		return m.Authenticator.Key(r)
	case named == "" || named == unknownID:
		return workspace.Principal{}, fault.New(fault.Forbidden, "The workspace does not admit the token.")
	}
	return workspace.Principal{Workspace: strings.ToLower(named), Role: workspace.Admin, Subject: "admin"}, nil
}

// TestAttackTokensOfThePlatform checks that a repository with an authentication of its own sees no
// token of the platform's issuers, not even a token that the workspace does not admit: neither its
// authentication, nor its routes, nor its graphs. The tokens of its own users arrive.
func TestAttackTokensOfThePlatform(t *testing.T) {
	t.Parallel()
	for name, closed := range map[string]bool{"open routes": false, "closed routes": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var g guardian
			var graph heard
			agent := graphtest.NewAgent(graph.answer, graphtest.Token)
			agent.Rule, agent.App = g.rule, ownApp(nil)
			server := httptest.NewServer(agent)
			t.Cleanup(server.Close)
			f := setUpLimited(t, compute.Endpoint{URL: server.URL, Token: graphtest.Token}, 0, quota.Limits{}, func(c *agentserver.Config) {
				c.Authenticator = members{c.Authenticator}
			})
			f.auth, f.settings = "./auth.py:auth", build.Settings{HTTP: &build.HTTP{App: "./app.py:app", RouteAuth: closed, Include: []string{"authorization"}}}
			f.deploy(t, "agent")
			own := f.deployment.Workspace
			for _, c := range []struct {
				bearer, tenant string
				seen           bool
			}{
				{ofIssuer, own, false}, {ofIssuer, strings.ToUpper(own), false}, {ofIssuer, unknownID, false},
				{ofUser, "", true}, {ofUser, "acme", true}, {"Bearer ada", own, true}, {"Basic b3duOnVzZXI=", own, true},
			} {
				headers := map[string]string{auth.HeaderBearer: c.bearer}
				if c.tenant != "" {
					headers[auth.HeaderTenant] = c.tenant
				}
				f.send(t, "POST", f.path("/threads/search"), object{}, headers)
				asked := g.last()
				if got := asked["authorization"]; (got == c.bearer) != c.seen || (asked["x-tenant-id"] != "") != (c.seen && c.tenant != "") {
					t.Errorf("%q for %q: the authentication has seen %q for %q", c.bearer, c.tenant, got, asked["x-tenant-id"])
				}
				headers[auth.HeaderKey] = "ada" // the authentication lets in users by their keys
				route := string(f.send(t, "GET", f.path("/seen"), nil, headers).text)
				if got := strings.Contains(route, "\nauthorization: "+c.bearer+"\n"); got != c.seen || (!got && strings.Contains(route, "x-tenant-id")) || !strings.Contains(route, "x-api-key: ada\n") {
					t.Errorf("%q for %q: the route has seen %s", c.bearer, c.tenant, route)
				}
				wantStatus(t, f.send(t, "POST", f.path("/runs/wait"), hi(), headers), http.StatusOK)
				if got := graph.invocation().Headers["authorization"]; (got == c.bearer) != c.seen {
					t.Errorf("%q for %q: the graph has seen %q", c.bearer, c.tenant, got)
				}
			}
		})
	}
}
