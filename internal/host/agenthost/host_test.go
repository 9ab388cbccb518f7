package agenthost_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/host/agenthost"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/wire"
	"github.com/slipway-run/slipway/internal/test/check"
)

// target reads the state of a release, without waiting.
func (m machine) target(t *testing.T, r compute.Release) (compute.State, error) {
	t.Helper()
	now, cancel := context.WithCancel(t.Context())
	cancel()
	status, err := m.Await(now, r.Ref)
	return status.State, err
}

func TestTokenIsWanted(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t, t.TempDir()), computetest.NewRelease(computetest.Serve)
	check.Must(t, m.Apply(t.Context(), r))
	m.healthy(t, r)
	for _, route := range []string{
		"POST " + wire.Releases, "GET " + pathOf(wire.Release, r.Ref), "DELETE " + pathOf(wire.Release, r.Ref),
		"POST " + wire.Ends, "POST " + wire.Builds, "GET " + wire.Path(wire.Build, r.Revision), "DELETE " + wire.Path(wire.Build, r.Revision),
		"POST " + pathOf(wire.Agent, r.Ref) + "/invocations",
	} {
		method, path, _ := strings.Cut(route, " ")
		wrong := []string{"", "Bearer", "Bearer ", "Bearer " + token + "0", "Bearer " + token[1:], token, "Basic " + token, "bearer" + token}
		if strings.HasPrefix(path, "/agents") {
			wrong = append(wrong, "Bearer "+token)
		} else {
			wrong = append(wrong, "Bearer "+r.Token)
		}
		for _, shown := range wrong {
			if status, detail := request(t, method, m.url+path, shown, r); status != http.StatusUnauthorized || !strings.Contains(detail, "bearer token") {
				t.Errorf("%s with %q: got %d %s", route, shown, status, detail)
			}
		}
	}
	m.want(t, r, compute.Healthy)
	if status, _ := request(t, "GET", m.url+pathOf(wire.Agent, r.Ref)+"/ping", "", nil); status != http.StatusOK {
		t.Errorf("ping without a token: got %d", status)
	}
}

func TestHostRefuses(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t, t.TempDir()), computetest.NewRelease(computetest.Serve)
	elsewhere, bad := r, r
	elsewhere.Workspace = "../../up"
	bad.Deployment = ""
	for name, c := range map[string]struct {
		method, path string
		body         any
		status       int
		want         string
	}{
		"a workspace that is no id":  {"POST", wire.Releases, elsewhere, 400, `workspace "../../up" is not an id`},
		"a deployment that is no id": {"POST", wire.Releases, bad, 400, `deployment "" is not an id`},
		"removing what is no id":     {"DELETE", "/releases/a/b/c", nil, 400, "is not an id"},
		"a member it does not know":  {"POST", wire.Releases, map[string]any{"Replicas": 3}, 400, "This version of the host does not take"},
		"another type":               {"POST", wire.Builds, map[string]any{"Revision": 3}, 400, "This version of the host does not take"},
		"a large body":               {"POST", wire.Builds, map[string]any{"Ref": strings.Repeat("x", 5<<20)}, 413, "more than"},
		"a wait that is none":        {"GET", pathOf(wire.Release, r.Ref) + "?wait=long", nil, 400, "not a duration"},
		"another path":               {"GET", "/", nil, 404, "Not Found"},
		"another path of an agent":   {"GET", pathOf(wire.Agent, r.Ref) + "/environment", nil, 404, "Not Found"},
		"another method":             {"PUT", wire.Releases, r, 405, "Method Not Allowed"},
	} {
		if status, detail := request(t, c.method, m.url+c.path, "Bearer "+token, c.body); status != c.status || !strings.Contains(detail, c.want) {
			t.Errorf("%s: got %d %s", name, status, detail)
		}
	}
}

func TestInvocationOfWhatDoesNotRun(t *testing.T) {
	t.Parallel()
	m := newMachine(t, t.TempDir(), func(c *agenthost.Config) { c.RoomWait = time.Hour })
	starting, failed := computetest.NewRelease(computetest.Deaf), computetest.NewRelease(computetest.Exit)
	for r, want := range map[*compute.Release]string{&starting: "is progressing", &failed: "is failed: the agent exited with code 7"} {
		check.Must(t, m.Apply(t.Context(), *r))
		if r == &failed {
			m.want(t, failed, compute.Failed)
		}
		status, detail := request(t, "POST", m.url+pathOf(wire.Agent, r.Ref)+"/invocations", "Bearer "+r.Token, nil)
		if status != http.StatusServiceUnavailable || !strings.Contains(detail, want) {
			t.Errorf("got %d %s, want %q", status, detail, want)
		}
		endpoint := compute.Endpoint{URL: m.url + pathOf(wire.Agent, r.Ref), Token: r.Token}
		_, err := graph.NewClient(&http.Transport{DisableKeepAlives: true}).Invoke(t.Context(), endpoint, graph.Invocation{})
		if absent, ok := errors.AsType[*graph.AbsentError](err); !ok || absent.MayHaveBegun {
			t.Errorf("the client of the agent gets %v", err)
		}
	}
}

// elusive is a target whose agent is not at the address that it returns.
type elusive struct {
	compute.MachineTarget
	endpoint compute.Endpoint
	err      error
}

func (e elusive) Acquire(context.Context, compute.Ref) (compute.Endpoint, func(), error) {
	return e.endpoint, func() {}, e.err
}

func TestAgentCannotBeReached(t *testing.T) {
	t.Parallel()
	nobody := httptest.NewServer(nil)
	nobody.Close()
	r := computetest.NewRelease("")
	for _, c := range []struct {
		target elusive
		status int
		want   string
	}{
		{elusive{endpoint: compute.Endpoint{URL: nobody.URL}}, 502, "The agent of revision " + r.Revision + " could not be reached"},
		{elusive{endpoint: compute.Endpoint{URL: "http://%zz"}}, 500, "parse"},
		{elusive{err: errors.New("no disks")}, 500, "no disks"},
	} {
		m := newMachine(t, t.TempDir(), func(cfg *agenthost.Config) {
			c.target.MachineTarget = cfg.Target
			cfg.Target = c.target
		})
		status, detail := request(t, "GET", m.url+pathOf(wire.Agent, r.Ref)+"/ping", "", nil)
		if status != c.status || !strings.HasPrefix(detail, c.want) {
			t.Errorf("got %d %s, want %d %s", status, detail, c.status, c.want)
		}
	}
}

// TestRequestIsPassedOn reads the request that the agent gets: all values from the caller, and
// no value of the host.
func TestRequestIsPassedOn(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body string
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got, body = r, string(sent)
		w.Header().Set("X-Agent", "yes")
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(agent.Close)
	r := computetest.NewRelease("")
	m := newMachine(t, t.TempDir(), func(c *agenthost.Config) {
		c.Target = elusive{MachineTarget: c.Target, endpoint: compute.Endpoint{URL: agent.URL, Token: r.Token}}
	})
	sent, err := http.NewRequestWithContext(patience(t), http.MethodPost, m.url+pathOf(wire.Agent, r.Ref)+"/invocations", strings.NewReader("{}"))
	check.Must(t, err)
	sent.Close = true
	for name, value := range map[string]string{
		"Authorization": "Bearer " + r.Token, "Content-Type": "application/json", "Traceparent": "00-1-2-01", "X-Slipway-Revision": r.Revision,
		"X-Forwarded-For": "10.0.0.1",
	} {
		sent.Header.Set(name, value)
	}
	response, err := http.DefaultTransport.RoundTrip(sent)
	check.Must(t, err)
	check.Must(t, response.Body.Close())
	if response.StatusCode != http.StatusTeapot || response.Header.Get("X-Agent") != "yes" {
		t.Errorf("got %s %v", response.Status, response.Header)
	}
	if got.URL.Path != "/invocations" || got.Host != strings.TrimPrefix(agent.URL, "http://") || body != "{}" {
		t.Errorf("the agent got %s of %s: %s", got.URL, got.Host, body)
	}
	sent.Header.Del("X-Forwarded-For")
	for name, values := range sent.Header {
		if got.Header.Get(name) != values[0] {
			t.Errorf("the agent got %s: %q", name, got.Header.Get(name))
		}
	}
	if forwarded := got.Header.Get("X-Forwarded-For"); forwarded != "" {
		t.Errorf("the agent got X-Forwarded-For: %s", forwarded)
	}
}

// TestVisitsArePassedOn sends requests to an agent's own application as a function does: the agent
// gets the path with its escapes, the query and the client's host. It gets nothing without its
// token.
func TestVisitsArePassedOn(t *testing.T) {
	t.Parallel()
	var got *http.Request
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		_, _ = io.WriteString(w, "\x00\xff")
	}))
	t.Cleanup(agent.Close)
	r := computetest.NewRelease("")
	m := newMachine(t, t.TempDir(), func(c *agenthost.Config) {
		c.Target = elusive{MachineTarget: c.Target, endpoint: compute.Endpoint{URL: agent.URL, Token: r.Token}}
	})
	for path, want := range map[string]string{"/a%2Fb/%20c": "/app/a%2Fb/%20c", "/": "/app/", "": "/app"} {
		sent := httptest.NewRequestWithContext(patience(t), http.MethodPut, "/?b=2&a=%2F&a", strings.NewReader("{}"))
		sent.Host = "api.example"
		answer := httptest.NewRecorder()
		at := compute.Endpoint{URL: m.url + pathOf(wire.Agent, r.Ref), Token: r.Token}
		check.Must(t, graph.NewClient(nil).Visit(answer, sent, at, graph.Visit{Path: path, Prefix: "/d/x"}))
		if answer.Code != http.StatusOK || answer.Body.String() != "\x00\xff" || len(answer.Result().Cookies()) != 2 {
			t.Errorf("%s: got %d %q %v", path, answer.Code, answer.Body, answer.Header())
		}
		if got.URL.EscapedPath() != want || got.URL.RawQuery != "b=2&a=%2F&a" || got.Host != "api.example" || got.Method != http.MethodPut {
			t.Errorf("%s: the agent got %s %s of %s", path, got.Method, got.URL, got.Host)
		}
		if got.Header.Get("X-Forwarded-Prefix") != "/d/x" || got.Header.Get("X-Forwarded-Host") != "api.example" || got.Header.Get("X-Forwarded-For") == "" {
			t.Errorf("%s: the agent got %v", path, got.Header)
		}
	}
	got = nil
	if status, _ := request(t, "GET", m.url+pathOf(wire.Agent, r.Ref)+"/app/x", "Bearer "+r.Token, nil); status != http.StatusUnauthorized || got != nil {
		t.Errorf("without the agent's token in the header of visits: got %d", status)
	}
}
