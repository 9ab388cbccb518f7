package agentserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/tenant/session"
	"github.com/slipway-run/slipway/internal/test/check"
)

// ownApp is a repository's own application, which returns the request that it has seen.
func ownApp(held <-chan struct{}) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("X-Own", "yes")
		w.Header().Set("Clear-Site-Data", `"*"`)
		w.Header().Set("Report-To", `{"group": "all", "max_age": 86400, "endpoints": [{"url": "https://evil.test/"}]}`)
		w.Header().Set("NEL", `{"report_to": "all", "max_age": 86400, "success_fraction": 1}`)
		w.Header().Set("Accept-CH", "Sec-CH-UA-Full-Version-List, Sec-CH-UA-Model")
		w.Header().Set("Secure-Session-Registration", `(ES256); path="/d/start"; challenge="c"`)
		w.Header().Set("Sec-Session-Registration", `(ES256); path="/d/start"; challenge="c"`)
		w.Header().Set("Use-As-Dictionary", `match="/*", id="own"`)
		w.Header().Set("Set-Login", "logged-out")
		w.Header().Set("X-Slipway-Caller", "forged")
		w.Header().Add("Set-Cookie", "a=1; Path=/x; Domain=example.com; HttpOnly")
		w.Header().Add("Set-Cookie", "slipway_session=stolen; Path=/")
		if r.URL.Path == "/leaves" {
			http.Redirect(w, r, "/seen", http.StatusFound)
			return
		}
		if r.URL.Path == "/missing" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = fmt.Fprintf(w, "%s %s?%s %s\n", r.Method, r.URL.EscapedPath(), r.URL.RawQuery, body)
		for _, name := range slices.Sorted(maps.Keys(r.Header)) {
			_, _ = fmt.Fprintf(w, "%s: %s\n", strings.ToLower(name), strings.Join(r.Header[name], ", "))
		}
	})
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		for lines := bufio.NewReader(r.Body); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(w, "heard "+line)
			_ = control.Flush()
		}
	})
	mux.HandleFunc("GET /holds", func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		select {
		case <-held:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("GET /breaks", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("GET /hints", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Clear-Site-Data", `"*"`)
		w.WriteHeader(http.StatusEarlyHints)
	})
	mux.HandleFunc("GET /cors", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "https://own.test")
		w.Header().Set("Vary", "Accept, origin")
	})
	for _, path := range []string{"/kept", "/store/items"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Cache-Control", "public, max-age=60") })
	}
	mux.HandleFunc("GET /varies", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Vary", "Origin") })
	return mux
}

// setUpOwn deploys an agent with an application of its own, whose routes shadow POST of
// /threads/search and all paths below /store.
func setUpOwn(t *testing.T, asked build.HTTP, limits quota.Limits, change ...func(*agentserver.Config)) *fixture {
	t.Helper()
	return setUpOwnRoutes(t, asked, []graph.Route{
		{Methods: []string{"POST"}, Pattern: "^/threads/search$"}, {Pattern: "^/store/(?P<path>.*)$"}, {Pattern: `(?<=x)y`},
	}, limits, change...)
}

func setUpOwnRoutes(t *testing.T, asked build.HTTP, routes []graph.Route, limits quota.Limits, change ...func(*agentserver.Config)) *fixture {
	t.Helper()
	held := make(chan struct{})
	agent := graphtest.NewAgent(nil, graphtest.Token)
	agent.App = ownApp(held)
	agent.Routes = routes
	server := httptest.NewServer(agent)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(held) })
	f := setUpLimited(t, compute.Endpoint{URL: server.URL, Token: graphtest.Token}, 0, limits, change...)
	asked.App = "./app.py:app"
	f.settings = build.Settings{HTTP: &asked}
	f.deploy(t, "agent")
	return f
}

// TestTheRoutesOfARepositorysOwnApplication checks that these routes take precedence over the
// server's, and are open to every caller.
func TestTheRoutesOfARepositorysOwnApplication(t *testing.T) {
	t.Parallel()
	f := setUpOwn(t, build.HTTP{}, quota.Limits{})
	seen := f.send(t, "PUT", f.path("/seen/a%2Fb?x=1&x=2;3"), "text", map[string]string{"X-Custom": "c", "Content-Type": "text/plain"})
	if seen.StatusCode != http.StatusOK || !strings.HasPrefix(string(seen.text), "PUT /seen/a%2Fb?x=1&x=2;3 text\n") || !strings.Contains(string(seen.text), "x-custom: c\n") || seen.Header.Get("X-Own") != "yes" {
		t.Errorf("got %d %s", seen.StatusCode, seen.text)
	}
	for request, own := range map[string]bool{
		"GET /": true, "GET /missing": true, "POST /threads/search": true, "PUT /store/items": true, "GET /threads/search": false, "DELETE /threads": false,
		"GET /ok": false, "GET /openapi.json": false,
	} {
		method, path, _ := strings.Cut(request, " ")
		for _, key := range []string{f.key, f.stranger, ""} {
			got := f.send(t, method, f.path(path), nil, map[string]string{auth.HeaderKey: key})
			if (got.Header.Get("X-Own") == "yes") != own {
				t.Errorf("%s with %.12q: %d %.100s", request, key, got.StatusCode, got.text)
			}
		}
	}
	wantStatus(t, f.call(t, "POST", "/threads", object{}), http.StatusOK)
	wantStatus(t, f.send(t, "POST", f.path("/threads"), object{}, nil), http.StatusUnauthorized)
	wantStatus(t, f.call(t, "PUT", "/threads", nil), http.StatusMethodNotAllowed)
	wantStatus(t, f.send(t, "GET", "/d/"+unknownID+"/seen", nil, nil), http.StatusNotFound)
}

// TestAnApplicationsAnswersStayBelowItsPaths.
func TestAnApplicationsAnswersStayBelowItsPaths(t *testing.T) {
	t.Parallel()
	f := setUpOwn(t, build.HTTP{}, quota.Limits{})
	f.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	got := f.send(t, "GET", f.path("/leaves"), nil, nil)
	if at := got.Header.Get("Location"); got.StatusCode != http.StatusFound || at != f.path("/seen") {
		t.Errorf("%d leads to %q", got.StatusCode, at)
	}
	if cookies := got.Header.Values("Set-Cookie"); len(cookies) != 1 || cookies[0] != "a=1; Path="+f.path("/x")+"; HttpOnly" {
		t.Errorf("the cookies are %q", cookies)
	}
	if policy := got.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "sandbox ") || strings.Contains(policy, "same-origin") {
		t.Errorf("the policy is %q", policy)
	}
	for _, name := range []string{
		"Accept-CH", "Clear-Site-Data", "NEL", "Report-To", "Sec-Session-Registration", "Secure-Session-Registration", "Set-Login", "Use-As-Dictionary", "X-Slipway-Caller",
	} {
		if value := got.Header.Get(name); value != "" {
			t.Errorf("%s is %s", name, value)
		}
	}
	if len(got.Header.Values("X-Request-Id")) != 1 {
		t.Errorf("the headers are %v", got.Header)
	}
}

// TestInformationalAnswersOfAnApplicationStayBehind: they would bring headers that nobody has
// looked at, and take the server's own headers from the answer.
func TestInformationalAnswersOfAnApplicationStayBehind(t *testing.T) {
	t.Parallel()
	f := setUpOwn(t, build.HTTP{CORS: &build.CORS{Origins: []string{"https://page.test"}}}, quota.Limits{})
	var early []int
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(status int, _ textproto.MIMEHeader) error {
		early = append(early, status)
		return nil
	}})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL+f.path("/hints"), http.NoBody)
	check.Must(t, err)
	request.Header.Set("Origin", "https://page.test")
	got, err := f.Client().Do(request)
	check.Must(t, err)
	check.Must(t, got.Body.Close())
	if len(early) != 0 {
		t.Errorf("before the answer came %v", early)
	}
	if got.StatusCode != http.StatusOK || got.Header.Get("X-Request-Id") == "" || got.Header.Get("Access-Control-Allow-Origin") != "https://page.test" {
		t.Errorf("%d %v", got.StatusCode, got.Header)
	}
}

// TestAttackCredentialsDoNotReachAnApplication checks this whether or not the application's
// routes ask for credentials.
func TestAttackCredentialsDoNotReachAnApplication(t *testing.T) {
	t.Parallel()
	for name, asked := range map[string]build.HTTP{"open": {}, "with credentials": {RouteAuth: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUpOwn(t, asked, quota.Limits{})
			for _, headers := range []map[string]string{
				{auth.HeaderKey: f.key, "Cookie": "slipway_session=secret; own=1", "X-Slipway-Caller": "forged"}, {auth.HeaderBearer: "Bearer " + f.key}, {auth.HeaderKey: f.key, auth.HeaderBearer: "Bearer " + f.key},
				{auth.HeaderKey: f.key, auth.HeaderBearer: "Bearer header.payload.signature", auth.HeaderTenant: f.deployment.Workspace},
				{auth.HeaderBearer: "Bearer " + session.Prefix + "guess", "Cookie": "slipway_sign_in_ABCDEFGH=a.b.c.; slipway_sign_in_code=payload"},
			} {
				got := f.send(t, "GET", f.path("/seen"), nil, headers)
				for _, hidden := range []string{apikey.Prefix, session.Prefix, "slipway_session", "slipway_sign_in", "payload", graphtest.Token, "forged"} {
					if strings.Contains(string(got.text), hidden) {
						t.Errorf("the application has seen %q of %v: %s", hidden, headers, got.text)
					}
				}
			}
			if got := f.send(t, "GET", f.path("/seen"), nil, map[string]string{auth.HeaderKey: f.key, "Cookie": "own=1"}); !strings.Contains(string(got.text), "cookie: own=1") {
				t.Errorf("it does not see its own cookie: %d %s", got.StatusCode, got.text)
			}
		})
	}
}

// TestAttackOwnRoutesWithCredentials checks that a request needs valid credentials where the
// repository asks for them.
func TestAttackOwnRoutesWithCredentials(t *testing.T) {
	t.Parallel()
	f := setUpOwn(t, build.HTTP{RouteAuth: true}, quota.Limits{})
	for _, request := range []string{"GET /seen", "POST /threads/search", "GET /store/items", "POST /echo"} {
		method, path, _ := strings.Cut(request, " ")
		for key, status := range map[string]int{"": 401, "nonsense": 401, f.stranger: 404} {
			if got := f.send(t, method, f.path(path), nil, map[string]string{auth.HeaderKey: key}); got.StatusCode != status || got.Header.Get("X-Own") != "" {
				t.Errorf("%s with %.12q: %d %s, want %d", request, key, got.StatusCode, got.text, status)
			}
		}
	}
	if got := f.call(t, "GET", "/seen", nil); got.StatusCode != http.StatusOK || !strings.Contains(string(got.text), "x-slipway-caller: ") {
		t.Errorf("with a key: %d %s", got.StatusCode, got.text)
	}
}

// TestAnAgentReachesTheServersRoutes checks this where the repository has other routes in
// their place, or disables them.
func TestAnAgentReachesTheServersRoutes(t *testing.T) {
	t.Parallel()
	f := setUpUndeployed(t, nil, 0)
	f.settings = build.Settings{HTTP: &build.HTTP{Disabled: []string{"threads", "store"}, MountPrefix: "/api"}}
	token := secret.InvokeToken(f.hasher, f.deploy(t, "agent"))
	headers := map[string]string{auth.HeaderKey: token, auth.HeaderTenant: f.deployment.Workspace}
	wantStatus(t, f.send(t, "POST", f.path("/threads/search"), object{}, headers), http.StatusOK)
	wantStatus(t, f.call(t, "POST", "/threads/search", object{}), http.StatusNotFound)
}

// TestBodiesOfOwnRoutesAreStreamed streams bodies in both directions at once.
func TestBodiesOfOwnRoutesAreStreamed(t *testing.T) {
	t.Parallel()
	f := setUpOwn(t, build.HTTP{}, quota.Limits{})
	said, says := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL+f.path("/echo"), said)
	check.Must(t, err)
	go func() { _, _ = io.WriteString(says, "one\n") }()
	answer, err := f.Client().Do(request)
	check.Must(t, err)
	defer answer.Body.Close()
	heard := bufio.NewReader(answer.Body)
	for _, word := range []string{"one", "two"} {
		line, err := heard.ReadString('\n')
		if check.Must(t, err); line != "heard "+word+"\n" {
			t.Errorf("heard %q", line)
		}
		if word == "one" {
			_, err = io.WriteString(says, "two\n")
			check.Must(t, err)
		}
	}
	check.Must(t, says.Close())
	if rest, err := io.ReadAll(heard); err != nil || len(rest) > 0 {
		t.Errorf("the rest is %q, %v", rest, err)
	}
}

// TestAttackVisitorsUseUpTheQuotas checks that strangers at open routes take nothing from the
// quotas of the workspace: they have a pool of their own. Callers that the server must know
// use the quotas.
func TestAttackVisitorsUseUpTheQuotas(t *testing.T) {
	t.Parallel()
	f := setUpOwn(t, build.HTTP{}, quota.Limits{}.With(quota.Streams, 8).With(quota.Requests, 8))
	for range 100 {
		refused := f.send(t, "GET", f.path("/seen"), nil, nil)
		if refused.StatusCode != http.StatusTooManyRequests {
			wantStatus(t, refused, http.StatusOK)
			continue
		}
		if wait := refused.Header.Get("Retry-After"); wait == "" || !strings.Contains(string(refused.text), "too many visitors without a key") {
			t.Errorf("got %s, Retry-After %q", refused.text, wait)
		}
	}
	wantStatus(t, f.call(t, "POST", "/threads", object{}), http.StatusOK)

	f = setUpOwn(t, build.HTTP{}, quota.Limits{}.With(quota.Streams, 1))
	answer := f.open(t.Context(), t, "GET", f.path("/holds"), nil, nil)
	defer answer.Body.Close()
	wantStatus(t, f.send(t, "GET", f.path("/seen"), nil, nil), http.StatusTooManyRequests)
	wantStatus(t, f.call(t, "POST", "/runs/wait", hi()), http.StatusOK)
}

// TestAttackLimitsOfOwnRoutes checks that connections of visitors are bounded.
func TestAttackLimitsOfOwnRoutes(t *testing.T) {
	t.Parallel()
	f := setUpOwn(t, build.HTTP{}, quota.Limits{}.With(quota.Streams, 1))
	ctx, leave := context.WithCancel(t.Context())
	answer := f.open(ctx, t, "GET", f.path("/holds"), nil, nil)
	wantStatus(t, f.send(t, "GET", f.path("/seen"), nil, nil), http.StatusTooManyRequests)
	leave()
	answer.Body.Close()
	for deadline := time.Now().Add(time.Minute); f.send(t, "GET", f.path("/seen"), nil, nil).StatusCode != http.StatusOK; {
		if time.Now().After(deadline) {
			t.Fatal("the place is not given back")
		}
	}
	if got := f.send(t, "POST", f.path("/seen"), strings.Repeat("x", 26<<20), nil); got.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a body that is too large: %d %.100s", got.StatusCode, got.text)
	}
	broken := f.open(t.Context(), t, "GET", f.path("/breaks"), nil, nil)
	defer broken.Body.Close()
	if text, err := io.ReadAll(broken.Body); err == nil {
		t.Errorf("an answer that broke off looks whole: %q", text)
	}
}

// TestAnApplicationThatIsDown.
func TestAnApplicationThatIsDown(t *testing.T) {
	t.Parallel()
	f := setUpAt(t, compute.Endpoint{URL: "http://127.0.0.1:1", Token: graphtest.Token}, 0)
	f.settings = build.Settings{HTTP: &build.HTTP{App: "./app.py:app"}}
	f.deploy(t, "agent")
	wantStatus(t, f.send(t, "GET", f.path("/seen"), nil, nil), http.StatusServiceUnavailable)
}

// TestDisabledRoutes disables each group alone.
func TestDisabledRoutes(t *testing.T) {
	t.Parallel()
	groups := map[string][]string{
		"assistants": {"POST /assistants/search"}, "threads": {"POST /threads", "POST /threads/" + unknownID + "/runs"}, "store": {"POST /store/items/search"},
		"runs": {"POST /runs", "POST /threads/" + unknownID + "/runs", "POST /runs/crons/search", "POST /threads/" + unknownID + "/commands"}, "meta": {"GET /info", "GET /metrics", "GET /openapi.json", "GET /docs"},
		"mcp": {"POST /mcp"}, "a2a": {"POST /a2a/agent", "GET /a2a/agent/.well-known/agent-card.json", "GET /.well-known/agent-card.json?assistant_id=agent"},
	}
	all := []string{"POST /assistants/search", "POST /threads", "POST /store/items/search", "POST /runs", "POST /runs/crons/search", "GET /info", "GET /openapi.json", "GET /docs"}
	for group, gone := range groups {
		f := setUpUndeployed(t, nil, 0)
		f.settings = build.Settings{HTTP: &build.HTTP{Disabled: []string{group}}}
		f.deploy(t, "agent")
		for _, request := range append(gone, all...) {
			method, path, _ := strings.Cut(request, " ")
			var body any
			if method == "POST" {
				body = object{"assistant_id": "agent"}
			}
			got := f.call(t, method, path, body)
			if hidden := got.StatusCode == http.StatusNotFound && strings.Contains(string(got.text), `"Not Found"`); hidden != slices.Contains(gone, request) {
				t.Errorf("without %s, %s: %d %s", group, request, got.StatusCode, got.text)
			}
		}
		wantStatus(t, f.call(t, "GET", "/ok", nil), http.StatusOK)
	}
}

// TestAPrefixOfAllPaths.
func TestAPrefixOfAllPaths(t *testing.T) {
	t.Parallel()
	f := setUpOwn(t, build.HTTP{MountPrefix: "/api/v1"}, quota.Limits{})
	wantStatus(t, f.call(t, "POST", "/api/v1/threads", object{}), http.StatusOK)
	wantStatus(t, f.call(t, "GET", "/api/v1/info", nil), http.StatusOK)
	for _, path := range []string{"/info", "/api/v1x/info", "/api/info", "/seen", "/api/v1/api/v1/info"} {
		got := f.call(t, "GET", path, nil)
		if own := path == "/api/v1/api/v1/info"; got.StatusCode == http.StatusNotFound == own {
			t.Errorf("%s: %d %s", path, got.StatusCode, got.text)
		}
	}
	if got := f.send(t, "GET", f.path("/api/v1/seen/a%2Fb"), nil, nil); !strings.HasPrefix(string(got.text), "GET /api/v1/seen/a%2Fb?") {
		t.Errorf("the application has seen %s", got.text)
	}
}

// TestRulesForPagesOfOtherOrigins checks the rules in the configuration file, and the rules of
// an application itself.
func TestRulesForPagesOfOtherOrigins(t *testing.T) {
	t.Parallel()
	age := 60
	listed := func(c *agentserver.Config) { c.Origins = []string{"https://server.test"} }
	f := setUpOwn(t, build.HTTP{CORS: &build.CORS{
		Origins: []string{"https://a.test"}, OriginPattern: `https://.*\.b\.test`, Methods: []string{"GET", "POST"}, Headers: []string{"x-one"}, Exposed: []string{"x-two"}, Credentials: true, MaxAge: &age,
	}}, quota.Limits{}, listed)
	for origin, may := range map[string]bool{"https://a.test": true, "https://c.b.test": true, "https://c.b.test.evil": false, "https://evil": false} {
		for _, path := range []string{"/threads", "/seen"} {
			asked := f.send(t, "OPTIONS", f.path(path), nil, map[string]string{"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-one"})
			got := f.send(t, "POST", f.path(path), object{}, map[string]string{"Origin": origin, auth.HeaderKey: f.key})
			for which, header := range map[string]http.Header{"preflight": asked.Header, "request": got.Header} {
				if allowed := header.Get("Access-Control-Allow-Origin"); (allowed == origin) != may || (!may && allowed != "") {
					t.Errorf("%s of %s from %s: %q", which, path, origin, allowed)
				}
				if vary := header.Values("Vary"); !slices.Equal(vary, []string{"Origin"}) {
					t.Errorf("%s of %s from %s depends on %q", which, path, origin, vary)
				}
			}
			if !may {
				continue
			}
			h := asked.Header
			if asked.StatusCode != http.StatusNoContent || h.Get("Access-Control-Allow-Methods") != "GET, POST" || h.Get("Access-Control-Allow-Headers") != "Content-Type, x-one" || h.Get("Access-Control-Max-Age") != "60" ||
				h.Get("Access-Control-Allow-Credentials") != "true" || !strings.HasSuffix(got.Header.Get("Access-Control-Expose-Headers"), ", x-two") {
				t.Errorf("%s: %d %v and %v", path, asked.StatusCode, h, got.Header)
			}
		}
	}
	if got := f.send(t, "GET", f.path("/cors"), nil, map[string]string{"Origin": "https://a.test"}); !slices.Equal(got.Header.Values("Access-Control-Allow-Origin"), []string{"https://own.test"}) {
		t.Errorf("an application that has rules of its own: %v", got.Header)
	}
	for path, want := range map[string]string{"/cors": "Accept, origin", "/varies": "Origin"} {
		got := f.send(t, "GET", f.path(path), nil, map[string]string{"Origin": "https://a.test"})
		if vary := got.Header.Values("Vary"); !slices.Equal(vary, []string{want}) {
			t.Errorf("an answer of %s depends on %q, want %q", path, vary, want)
		}
	}
}

// TestAttackAnswersOfAnApplicationInACache has a cache before the server: an answer of the
// application to credentials must not become the answer to others, also if its route is in the
// place of a route of the server. The application may say what may be kept.
func TestAttackAnswersOfAnApplicationInACache(t *testing.T) {
	t.Parallel()
	for closed, unsaid := range map[bool][]string{false: nil, true: {"private, no-cache"}} {
		f := setUpOwn(t, build.HTTP{RouteAuth: closed}, quota.Limits{})
		for route, want := range map[string][]string{
			"GET /seen": unsaid, "PUT /store/items": unsaid, "GET /kept": {"public, max-age=60"}, "GET /store/items": {"public, max-age=60"},
		} {
			method, path, _ := strings.Cut(route, " ")
			got := f.call(t, method, path, nil)
			wantStatus(t, got, http.StatusOK)
			if rules := got.Header.Values("Cache-Control"); !slices.Equal(rules, want) {
				t.Errorf("closed %t, %s: got %q, want %q", closed, route, rules, want)
			}
		}
	}
}

// TestHeadersThatGraphsSee checks that graphs see only the headers that the configuration file
// chooses, but no credentials.
func TestHeadersThatGraphsSee(t *testing.T) {
	t.Parallel()
	var agent heard
	f := setUpUndeployed(t, agent.answer, 0)
	f.settings = build.Settings{HTTP: &build.HTTP{Include: []string{"Accept-Language", "auth*", "x-api-key", "x-org-*"}, Exclude: []string{"x-secret-*", "user-agent", "x-org-key"}}}
	f.deploy(t, "agent")
	path := "/threads/" + f.call(t, "POST", "/threads", object{}).string("thread_id") + "/runs/wait"
	wantStatus(t, f.send(t, "POST", f.path(path), hi(), map[string]string{
		auth.HeaderKey: f.key, "Accept-Language": "de", "Authorization": "Bearer of-the-user", "X-Secret-One": "no", "X-Org-Id": "o", "X-Org-Key": "no", "X-Other": "x", "User-Agent": "u", "Accept": "application/json",
	}), http.StatusOK)
	want := map[string]string{"accept-language": "de", "authorization": "Bearer of-the-user", "x-org-id": "o"}
	if got := agent.invocation().Headers; !maps.Equal(got, want) {
		text, err := json.Marshal(got)
		check.Must(t, err)
		t.Errorf("the graph sees %s", text)
	}
	wantStatus(t, f.send(t, "POST", f.path(path), hi(), map[string]string{auth.HeaderBearer: "Bearer " + f.key, auth.HeaderTenant: f.deployment.Workspace}), http.StatusOK)
	if _, seen := agent.invocation().Headers["authorization"]; seen {
		t.Error("the graph sees a key of the platform")
	}
}
