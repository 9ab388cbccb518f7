package agentserver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// setUpUI deploys an agent that has components of a user interface. The agent returns the
// request that it has seen.
func setUpUI(t *testing.T, asked build.HTTP, limits quota.Limits) *fixture {
	t.Helper()
	agent := graphtest.NewAgent(nil, graphtest.Token)
	agent.App = ownApp(nil)
	server := httptest.NewServer(agent)
	t.Cleanup(server.Close)
	f := setUpLimited(t, compute.Endpoint{URL: server.URL, Token: graphtest.Token}, 0, limits)
	asked.UI = true
	f.settings = build.Settings{HTTP: &asked}
	f.deploy(t, "agent")
	return f
}

// TestAttackComponentsOfAUserInterface checks that pages load files without credentials, and
// that only callers with a key learn which files show a component.
func TestAttackComponentsOfAUserInterface(t *testing.T) {
	t.Parallel()
	f := setUpUI(t, build.HTTP{}, quota.Limits{})
	file := f.send(t, "GET", f.path("/ui/agent/entrypoint.js"), nil, map[string]string{"Origin": "https://page.test"})
	if wantStatus(t, file, http.StatusOK); !strings.HasPrefix(string(file.text), "GET /ui/agent/entrypoint.js?") {
		t.Errorf("the agent has seen %s", file.text)
	}
	for key, status := range map[string]int{"": http.StatusUnauthorized, "nonsense": http.StatusUnauthorized, f.stranger: http.StatusNotFound} {
		wantStatus(t, f.send(t, "POST", f.path("/ui/agent"), object{"name": "card"}, map[string]string{auth.HeaderKey: key}), status)
		wantStatus(t, f.send(t, "DELETE", f.path("/ui/agent/entrypoint.js"), nil, map[string]string{auth.HeaderKey: key}), status)
	}
	shown := f.send(t, "POST", f.path("/ui/agent"), object{"name": "card"}, map[string]string{auth.HeaderKey: f.key, "X-Forwarded-Prefix": "/forged"})
	for words, said := range map[string]bool{
		`POST /ui/agent? {"name":"card"}`: true, "x-forwarded-prefix: /d/" + f.deployment.Deployment + "\n": true, "forged": false, apikey.Prefix: false,
	} {
		if strings.Contains(string(shown.text), words) != said {
			t.Errorf("the agent has seen %q: %t\n%s", words, !said, shown.text)
		}
	}
	wantStatus(t, f.call(t, "GET", "/other", nil), http.StatusNotFound)
	wantStatus(t, f.call(t, "GET", "/ui", nil), http.StatusNotFound)
}

// TestComponentsBelowAPrefix checks the path that the agent sees, and the prefix of its links.
func TestComponentsBelowAPrefix(t *testing.T) {
	t.Parallel()
	f := setUpUI(t, build.HTTP{MountPrefix: "/api"}, quota.Limits{})
	shown := f.call(t, "POST", "/api/ui/agent", object{"name": "card"})
	if text := string(shown.text); !strings.HasPrefix(text, "POST /api/ui/agent?") || !strings.Contains(text, "x-forwarded-prefix: "+f.path("")+"\n") {
		t.Errorf("the agent has seen %s", shown.text)
	}
	wantStatus(t, f.call(t, "POST", "/ui/agent", object{"name": "card"}), http.StatusNotFound)
}

// TestDisabledComponents.
func TestDisabledComponents(t *testing.T) {
	t.Parallel()
	f := setUpUI(t, build.HTTP{Disabled: []string{"ui"}}, quota.Limits{})
	wantStatus(t, f.call(t, "POST", "/ui/agent", object{"name": "card"}), http.StatusNotFound)
	wantStatus(t, f.call(t, "GET", "/ui/agent/entrypoint.js", nil), http.StatusNotFound)
}

// TestAttackVisitorsOfAUserInterfaceUseUpTheQuotas checks that requests for files, which need no
// key, are counted apart from requests with a key, whichever comes first.
func TestAttackVisitorsOfAUserInterfaceUseUpTheQuotas(t *testing.T) {
	t.Parallel()
	limits := quota.Limits{}.With(quota.Requests, 8)
	visit := func(t *testing.T, f *fixture) {
		t.Helper()
		f.send(t, "GET", f.path("/ui/agent/entrypoint.js"), nil, nil)
	}
	show := func(t *testing.T, f *fixture) {
		t.Helper()
		wantStatus(t, f.call(t, "POST", "/ui/agent", object{"name": "card"}), http.StatusOK)
	}
	t.Run("a caller comes first", func(t *testing.T) {
		t.Parallel()
		f := setUpUI(t, build.HTTP{}, limits)
		show(t, f)
		for range 100 {
			visit(t, f)
		}
		wantStatus(t, f.call(t, "POST", "/threads", object{}), http.StatusOK)
	})
	t.Run("a visitor comes first", func(t *testing.T) {
		t.Parallel()
		f := setUpUI(t, build.HTTP{}, limits)
		visit(t, f)
		for range 8 {
			show(t, f)
		}
	})
}
