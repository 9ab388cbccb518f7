package agentserver_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// costly is a pattern of 1 KB whose match with a long text takes seconds.
var costly = "https://(" + strings.Repeat("(a|a?)", 5) + "){100}"

// TestAttackPatternsOfOrigins checks that a costly pattern, which an earlier server's build has
// accepted, matches nothing, and that a pattern is matched with no origin that is too long.
// Preflights need no key.
func TestAttackPatternsOfOrigins(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("a", 300)
	for pattern, origins := range map[string]map[string]bool{
		costly:                {"https://aaa": false, "https://" + name: false},
		`https://a+\.b\.test`: {"https://a.b.test": true, "https://" + name + ".b.test": false},
	} {
		f := setUpOwn(t, build.HTTP{CORS: &build.CORS{OriginPattern: pattern}}, quota.Limits{})
		for origin, may := range origins {
			got := f.send(t, "OPTIONS", f.path("/threads"), nil, map[string]string{"Origin": origin, "Access-Control-Request-Method": "POST"})
			if allowed := got.Header.Get("Access-Control-Allow-Origin"); (allowed == origin) != may {
				t.Errorf("%.40s with %.40s: %q", pattern, origin, allowed)
			}
		}
	}
}

// describing deploys an agent with an application of its own and these routes.
func describing(t *testing.T, routes ...graph.Route) *fixture {
	t.Helper()
	agent := graphtest.NewAgent(nil, graphtest.Token)
	agent.App, agent.Routes = ownApp(nil), routes
	server := httptest.NewServer(agent)
	t.Cleanup(server.Close)
	f := setUpAt(t, compute.Endpoint{URL: server.URL, Token: graphtest.Token}, 0)
	f.settings = build.Settings{HTTP: &build.HTTP{App: "./app.py:app"}}
	f.deploy(t, "agent")
	return f
}

// TestAttackPatternsOfRoutes checks that costly patterns, patterns that are costly together, and
// long paths are not matched. Every caller can ask for these matches.
func TestAttackPatternsOfRoutes(t *testing.T) {
	t.Parallel()
	f := describing(t, graph.Route{Pattern: costly}, graph.Route{Pattern: "^/(" + strings.Repeat("(a|a?)", 5) + "){100}.*$"}, graph.Route{Pattern: "^/threads/search$"})
	if got := f.send(t, "POST", f.path("/threads/search"), object{}, nil); got.Header.Get("X-Own") == "" {
		t.Errorf("a route beside a costly route: %d %s", got.StatusCode, got.text)
	}
	wantStatus(t, f.send(t, "POST", f.path("/threads"), object{}, nil), http.StatusUnauthorized)

	var large []graph.Route
	for i := range 60 {
		large = append(large, graph.Route{Pattern: "(" + strings.Repeat("(a|a?)", 2) + fmt.Sprintf("){40}/threads%d", i)})
	}
	f = describing(t, append(large, graph.Route{Pattern: "^/threads/search$"})...)
	if got := f.send(t, "POST", f.path("/threads/search"), object{}, nil); got.StatusCode != http.StatusUnauthorized || got.Header.Get("X-Own") != "" {
		t.Errorf("a route beyond the size of all routes: %d %s", got.StatusCode, got.text)
	}
	if got := f.send(t, "GET", f.path("/assistants/"+strings.Repeat("a", 900)), nil, nil); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("a long path: %d %s", got.StatusCode, got.text)
	}
	long := f.call(t, "GET", "/assistants/"+strings.Repeat("a", 900), nil)
	wantDetail(t, long, http.StatusBadRequest, "The path is too long to be matched with the routes of the agent's own application.")
}

// TestAttackLongDescriptions checks that an agent that says too much of itself is not described,
// and that its runs go on.
func TestAttackLongDescriptions(t *testing.T) {
	t.Parallel()
	for name, routes := range map[string][]graph.Route{
		"long": {{Pattern: strings.Repeat("x", 5<<20)}},
		"many": make([]graph.Route, 1001),
	} {
		f := describing(t, routes...)
		got := f.send(t, "POST", f.path("/threads/search"), object{}, nil)
		if got.Header.Get("X-Own") != "" || got.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d %.200s", name, got.StatusCode, got.text)
		}
		schemas := f.call(t, "GET", "/assistants/"+agentID+"/schemas", nil)
		if want := map[string]string{"long": "the answer is larger than", "many": "1001 routes"}[name]; schemas.StatusCode != http.StatusServiceUnavailable || !strings.Contains(schemas.string("detail"), want) {
			t.Errorf("%s: %d %.200s", name, schemas.StatusCode, schemas.text)
		}
	}
}

// TestAttackLongRulings checks that a repository's own authentication answers with little more
// than it was asked, and that a large value that it was asked about comes back.
func TestAttackLongRulings(t *testing.T) {
	t.Parallel()
	f, guardian, _ := setUpGuarded(t)
	large := object{"metadata": object{"text": strings.Repeat("y", 200<<10)}}
	wantStatus(t, f.call(t, "POST", "/threads", large), http.StatusOK)
	guardian.answer(`{"allowed":true,"value":{},"detail":"` + strings.Repeat("x", 100<<10) + `"}`)
	wantStatus(t, f.call(t, "POST", "/threads", object{}), http.StatusServiceUnavailable)
}

// TestAttackRunsOfAThreadThatOnlyItsOwnerMayRead checks that a user who may search, but may not
// read a thread, does not see its runs.
func TestAttackRunsOfAThreadThatOnlyItsOwnerMayRead(t *testing.T) {
	t.Parallel()
	f, g, _ := setUpGuarded(t)
	g.open = []string{"threads:search"}
	thread := f.newThread(t)
	f.finish(t, thread, hi())
	for user, status := range map[string]int{"ada": http.StatusOK, "bob": http.StatusNotFound} {
		wantStatus(t, f.as(t, user, "GET", thread+"/runs", nil), status)
	}
}

// TestAttackCronsOfAThreadThatOnlyItsOwnerMayRead checks that a user who may search all crons does
// not see those of another user's thread.
func TestAttackCronsOfAThreadThatOnlyItsOwnerMayRead(t *testing.T) {
	t.Parallel()
	f, g, _ := setUpGuarded(t)
	g.open = []string{"crons:create", "crons:search"}
	thread := f.newThread(t)
	wantStatus(t, f.call(t, "POST", thread+"/runs/crons", yearly()), http.StatusOK)
	wantStatus(t, f.call(t, "POST", "/runs/crons", yearly()), http.StatusOK)
	for user, seen := range map[string][2]string{"ada": {"2", "1"}, "bob": {"1", "0"}} {
		for i, body := range []object{{}, {"thread_id": strings.TrimPrefix(thread, "/threads/")}} {
			found := f.as(t, user, "POST", "/runs/crons/search", body)
			if counted := f.as(t, user, "POST", "/runs/crons/count", body); strings.TrimSpace(string(counted.text)) != seen[i] || strconv.Itoa(len(found.body.([]any))) != seen[i] {
				t.Errorf("%s searches %v: found %s, counted %s, want %s", user, body, found.text, counted.text, seen[i])
			}
		}
	}
}

// TestAttackPlainTextOfAnotherPage sends plain text with the credentials that a browser adds to the
// requests of all pages. The repository's own authentication takes them: only the media type
// protects its users.
func TestAttackPlainTextOfAnotherPage(t *testing.T) {
	t.Parallel()
	agent := graphtest.NewAgent(nil, graphtest.Token)
	agent.Rule = func(_ context.Context, asked graph.Invocation) (string, error) {
		if asked.Operation == graph.OperationAuthorize {
			return usual(*asked.Access)
		}
		return `{"allowed": true, "user": {"identity": "ada"}}`, nil
	}
	server := httptest.NewServer(agent)
	t.Cleanup(server.Close)
	f := setUpAt(t, compute.Endpoint{URL: server.URL, Token: graphtest.Token}, 0)
	f.auth = "./auth.py:auth"
	f.deploy(t, "agent", "weather")
	for header, value := range map[string]string{"Cookie": "session=of-ada", auth.HeaderBearer: "Basic YWRhOnNlY3JldA=="} {
		run := f.finish(t, f.newThread(t), hi())
		for name, o := range guarded() {
			if o.body == nil {
				continue
			}
			method, path := request(name, run)
			path = f.path(strings.Replace(f.fill(t, path), "{checkpoint_id}", unknownID, 1) + o.query)
			for media, refused := range map[string]bool{"text/plain": true, "text/plain;charset=UTF-8": true, "application/json": false} {
				answer := f.open(t.Context(), t, method, path, o.body, map[string]string{header: value, "Content-Type": media})
				if answer.Body.Close(); (answer.StatusCode == http.StatusUnsupportedMediaType) != refused {
					t.Errorf("%s with %s and %s: got %d", name, header, media, answer.StatusCode)
				}
			}
		}
	}
	wantStatus(t, f.send(t, "POST", f.path("/threads"), "{}", map[string]string{auth.HeaderBearer: "Bearer of-ada", "Content-Type": "text/plain"}), http.StatusOK)
}
