package agenthost_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/host/agenthost"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/wire"
	"github.com/slipway-run/slipway/internal/test/check"
)

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
		c.Target = elusive{Target: c.Target, endpoint: compute.Endpoint{URL: agent.URL, Token: r.Token}}
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
