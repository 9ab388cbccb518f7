package agentserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// setUpDescribed deploys an agent that describes its graph with a function.
func setUpDescribed(t *testing.T, describe func(graph.Invocation) (graph.GraphDescription, bool)) *fixture {
	t.Helper()
	agent := graphtest.NewAgent(nil, graphtest.Token)
	agent.Describe = describe
	server := httptest.NewServer(agent)
	t.Cleanup(server.Close)
	f := setUpAt(t, compute.Endpoint{URL: server.URL, Token: graphtest.Token}, 0)
	f.deploy(t, "agent")
	return f
}

func drawingOf(node string) json.RawMessage {
	return json.RawMessage(`{"nodes":[{"id":"` + node + `"}],"edges":[]}`)
}

// TestAGraphIsDrawnToTheDepthAskedFor also asks for depths that the graph does not have, and for
// no depth.
func TestAGraphIsDrawnToTheDepthAskedFor(t *testing.T) {
	t.Parallel()
	f := setUpDescribed(t, func(graph.Invocation) (graph.GraphDescription, bool) {
		return graph.GraphDescription{InputSchema: json.RawMessage(`{}`), Graph: drawingOf("outer"), Xray: []json.RawMessage{drawingOf("one"), drawingOf("two")}}, true
	})
	for xray, want := range map[string]string{
		"": "outer", "?xray=false": "outer", "?xray=0": "outer", "?xray=1": "one", "?xray=2": "two", "?xray=9": "two", "?xray=true": "two",
	} {
		drawn := f.call(t, "GET", "/assistants/agent/graph"+xray, nil)
		wantStatus(t, drawn, http.StatusOK)
		if got := drawn.member("nodes").([]any)[0].(object)["id"]; got != want {
			t.Errorf("%q draws %v, want %s", xray, got, want)
		}
	}
	wantStatus(t, f.call(t, "GET", "/assistants/agent/graph?xray=deep", nil), http.StatusUnprocessableEntity)
	wantStatus(t, f.call(t, "GET", "/assistants/agent/graph?xray=-1", nil), http.StatusUnprocessableEntity)
}

// TestSchemasOfTypesAreMadeOnceWhenTheyAreAskedFor has an agent that has no time for its types at
// first.
func TestSchemasOfTypesAreMadeOnceWhenTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	var untyped, typed atomic.Int32
	f := setUpDescribed(t, func(asked graph.Invocation) (graph.GraphDescription, bool) {
		described := graph.GraphDescription{Graph: drawingOf("agent")}
		if !asked.Typed {
			untyped.Add(1)
			return described, true
		}
		described.InputSchema = json.RawMessage(`{"type":"object","title":"Typed"}`)
		return described, typed.Add(1) > 1
	})
	wantStatus(t, f.call(t, "GET", "/assistants/agent/graph", nil), http.StatusOK)
	if got := typed.Load(); got != 0 {
		t.Errorf("the drawing asked %d times for types", got)
	}
	for _, want := range []any{nil, object{"type": "object", "title": "Typed"}, object{"type": "object", "title": "Typed"}} {
		found := f.call(t, "GET", "/assistants/agent/schemas", nil)
		wantStatus(t, found, http.StatusOK)
		if diff := cmp.Diff(want, found.member("input_schema")); diff != "" {
			t.Errorf("the input schema (-want +got):\n%s", diff)
		}
	}
	if untyped.Load() != 1 || typed.Load() != 2 {
		t.Errorf("the agent was asked %d times, and %d times for types, want 1 and 2", untyped.Load(), typed.Load())
	}
}

// TestAttackACallerThatLeavesADescriptionUncounted asks an agent what it is and hangs up. Another
// request gets the answer. Its decoding takes memory from the budget for reads, and gives it back.
func TestAttackACallerThatLeavesADescriptionUncounted(t *testing.T) {
	t.Parallel()
	asked, proceed, finish := make(chan struct{}), make(chan struct{}), make(chan struct{})
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text := `{"graphs":{"agent":{"graph":{"nodes":[{"id":"` + strings.Repeat("n", 100_000) + `"}],"edges":[]}}}}`
		close(asked)
		<-proceed
		w.Header().Set("Content-Type", "application/json")
		_, err := io.WriteString(w, text[:90_000])
		err = errors.Join(err, http.NewResponseController(w).Flush())
		<-finish
		_, last := io.WriteString(w, text[90_000:])
		if err = errors.Join(err, last); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(agent.Close)
	f := setUpAt(t, compute.Endpoint{URL: agent.URL, Token: graphtest.Token}, 0)
	f.deploy(t, "agent")
	mux, reads := web.NewMux(slog.New(slog.DiscardHandler)), budget.New(64<<20)
	mux.Reads = reads
	check.Must(t, agentserver.Register(mux, agentserver.Config{
		Deployments: f.deployments, Assistants: assistant.NewStore(f.table, clock.System), Threads: f.threads, Runs: f.runs,
		Authenticator: auth.New(f.keys), Version: version,
		Agents: &runner.Agents{Deployments: f.deployments, Graph: graph.NewClient(nil), Target: targetAt(compute.Endpoint{URL: agent.URL, Token: graphtest.Token})},
	}))
	ask := func(ctx context.Context) <-chan int {
		request := httptest.NewRequestWithContext(ctx, http.MethodGet, f.path("/assistants/agent/graph"), nil)
		request.Header.Set(auth.HeaderKey, f.key)
		answered := make(chan int, 1)
		go func() {
			recorded := httptest.NewRecorder()
			mux.ServeHTTP(recorded, request)
			answered <- recorded.Code
		}()
		return answered
	}
	ctx, hangUp := context.WithCancel(t.Context())
	first := ask(ctx)
	<-asked
	hangUp()
	<-first
	second := ask(t.Context())
	close(proceed)
	for begun := time.Now(); reads.Held() == 0; runtime.Gosched() {
		if time.Since(begun) > time.Minute {
			t.Error("the description takes no memory from the budget")
			break
		}
	}
	close(finish)
	if got := <-second; got != http.StatusOK || reads.Held() != 0 {
		t.Errorf("got %d, and %d bytes are held", got, reads.Held())
	}
}

// TestAGraphIsDrawnAsItsAssistantConfiguresIt has an agent whose graph follows from the
// configuration. A configuration with which the agent has no graph shows the graph without one.
func TestAGraphIsDrawnAsItsAssistantConfiguresIt(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	f := setUpDescribed(t, func(invocation graph.Invocation) (graph.GraphDescription, bool) {
		asked.Add(1)
		var config struct{ Configurable struct{ Node string } }
		if len(invocation.Config) > 0 {
			check.Must(t, json.Unmarshal(invocation.Config, &config))
		}
		described := graph.GraphDescription{Configured: true}
		switch node := config.Configurable.Node; {
		case invocation.Graph != "" && (invocation.Graph != "agent" || invocation.User == nil):
			t.Errorf("the agent is asked for %s of %s", invocation.Graph, invocation.User)
		case node == "none":
		case node == "typed":
			described.Graph = drawingOf(node)
		default:
			described.Graph, described.InputSchema = drawingOf("node "+node), json.RawMessage(`{"title":"`+node+`"}`)
		}
		return described, true
	})
	for node, want := range map[string][2]string{"": {"node ", ""}, "a": {"node a", "a"}, "none": {"node ", ""}, "typed": {"typed", ""}} {
		made := f.call(t, "POST", "/assistants", object{"graph_id": "agent", "config": object{"configurable": object{"node": node}}})
		path := "/assistants/" + made.string("assistant_id")
		drawn, schemas := f.call(t, "GET", path+"/graph", nil), f.call(t, "GET", path+"/schemas", nil)
		wantStatus(t, drawn, http.StatusOK)
		if got := drawn.member("nodes").([]any)[0].(object)["id"]; got != want[0] {
			t.Errorf("%q draws %v, want %s", node, got, want[0])
		}
		if got := schemas.member("input_schema", "title"); got != want[1] {
			t.Errorf("the title of the input of %q is %v, want %s", node, got, want[1])
		}
	}
	if got := asked.Load(); got != 5 {
		t.Errorf("the agent was asked %d times, want once for each assistant, and once for all graphs", got)
	}
}

// TestSchemasOfSubgraphsAreMadeOfTypes has an agent whose graph has schemas, and whose subgraph has
// only types.
func TestSchemasOfSubgraphsAreMadeOfTypes(t *testing.T) {
	t.Parallel()
	var typed atomic.Int32
	f := setUpDescribed(t, func(asked graph.Invocation) (graph.GraphDescription, bool) {
		inner := graph.GraphDescription{}
		if asked.Typed {
			typed.Add(1)
			inner.InputSchema = json.RawMessage(`{"title":"Inner"}`)
		}
		known := json.RawMessage(`{"title":"Outer"}`)
		return graph.GraphDescription{InputSchema: known, Graph: drawingOf("agent"), Subgraphs: map[string]graph.GraphDescription{"inner": inner, "other": {InputSchema: known}}}, true
	})
	wantStatus(t, f.call(t, "GET", "/assistants/agent/schemas", nil), http.StatusOK)
	if got := typed.Load(); got != 0 {
		t.Errorf("the graph's own schemas asked %d times for types", got)
	}
	for _, path := range []string{"/subgraphs", "/subgraphs/inner"} {
		found := f.call(t, "GET", "/assistants/agent"+path, nil)
		wantStatus(t, found, http.StatusOK)
		if diff := cmp.Diff(any(object{"title": "Inner"}), found.member("inner", "input_schema")); diff != "" {
			t.Errorf("%s: the input schema (-want +got):\n%s", path, diff)
		}
	}
	if got := typed.Load(); got != 1 {
		t.Errorf("the agent was asked %d times for types, want once", got)
	}
}
