package agentserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
)

// keyed sends a key with each request.
type keyed string

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(auth.HeaderKey, string(k))
	return http.DefaultTransport.RoundTrip(r)
}

// tools connects a client of the Model Context Protocol with a key.
func (f *fixture) tools(t *testing.T, key string) *mcp.ClientSession {
	t.Helper()
	return f.toolsOf(t, key, nil)
}

// toolsOf connects a client with options.
func (f *fixture) toolsOf(t *testing.T, key string, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: f.URL + f.path("/mcp"), HTTPClient: &http.Client{Transport: keyed(key)}, MaxRetries: -1, DisableStandaloneSSE: true,
	}, nil)
	check.Must(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// toolNames returns the names of the tools that the client sees.
func toolNames(t *testing.T, session *mcp.ClientSession) (found []string) {
	t.Helper()
	listed, err := session.ListTools(t.Context(), nil)
	check.Must(t, err)
	for _, tool := range listed.Tools {
		found = append(found, tool.Name)
	}
	slices.Sort(found)
	return found
}

// TestAssistantsAreTools lists and calls them with the protocol's own client.
func TestAssistantsAreTools(t *testing.T) {
	t.Parallel()
	f := setUp(t, func(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
		emit(graph.EventUpdates, object{"model": object{"messages": []any{message("ai", "m", "Hello")}}})
		return nil
	})
	ann := f.call(t, "POST", "/assistants", object{"graph_id": "agent", "name": "Ann", "description": "Answers."}).string("assistant_id")
	var twins []string
	for range 2 {
		twins = append(twins, f.call(t, "POST", "/assistants", object{"graph_id": "weather", "name": "twin"}).string("assistant_id"))
	}
	spaced := f.call(t, "POST", "/assistants", object{"graph_id": "weather", "name": "a name with spaces"}).string("assistant_id")
	posing := f.call(t, "POST", "/assistants", object{"graph_id": "agent", "name": spaced}).string("assistant_id")
	want := slices.Concat(twins, []string{spaced, posing, "Ann", "agent", "weather"})
	slices.Sort(want)
	session := f.tools(t, f.key)
	if diff := cmp.Diff(want, toolNames(t, session)); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	for _, name := range []string{"Ann", twins[0]} {
		answer, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: hi()["input"]})
		check.Must(t, err)
		text, ok := answer.Content[0].(*mcp.TextContent)
		if !ok || answer.IsError || !strings.Contains(text.Text, "Hello") || answer.StructuredContent == nil {
			t.Errorf("%s answers %+v", name, answer)
		}
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "nobody"}); err == nil {
		t.Error("a tool that does not exist was called")
	}
	wantStatus(t, f.call(t, "DELETE", "/assistants/"+ann, nil), http.StatusNoContent)
	if slices.Contains(toolNames(t, session), "Ann") {
		t.Error("a deleted assistant is a tool")
	}
}

// TestMoreAssistantsThanTools checks that the default assistants stay tools, and that an assistant
// that is not listed can be called by its id, and by its name if no other assistant has this name.
func TestMoreAssistantsThanTools(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	create := func(name string) string {
		t.Helper()
		made := f.call(t, "POST", "/assistants", object{"graph_id": "weather", "name": name})
		wantStatus(t, made, http.StatusOK)
		return made.string("assistant_id")
	}
	old, twin, shy := create("old"), create("twin"), create("an old one")
	create("older")
	create("twin")
	for i := range 100 {
		create(fmt.Sprint("a", i))
	}
	agent := create("agent") // its name is the name of a graph
	session := f.tools(t, f.key)
	names := toolNames(t, session)
	for name, listed := range map[string]bool{"weather": true, assistant.DefaultID("agent"): true, agent: true, "a99": true, "a0": false, "old": false, "twin": false, "agent": false} {
		if slices.Contains(names, name) != listed {
			t.Errorf("the tool %s is listed: %t, want %t", name, !listed, listed)
		}
	}
	if len(names) != 100 {
		t.Errorf("%d tools are listed, want 100", len(names))
	}
	for name, runs := range map[string]bool{
		"weather": true, "agent": true, "a0": true, "a99": true, "old": true, old: true, strings.ToUpper(shy): true, twin: true,
		"twin": false, "an old one": false, "a": false, "nobody": false, "..": false, unknownID: false,
	} {
		answer, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: hi()["input"]})
		if got := err == nil && !answer.IsError; got != runs {
			t.Errorf("a call of %s runs: %t, want %t (%v)", name, got, runs, err)
		}
	}
}

// TestACallOfAToolFails checks that a client learns why, in the result of the tool.
func TestACallOfAToolFails(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 5<<20)
	f := setUp(t, func(_ context.Context, invocation graph.Invocation, emit func(string, any)) error {
		var input struct{ Large bool }
		check.Must(t, json.Unmarshal(invocation.Input, &input))
		if input.Large {
			emit(graph.EventUpdates, object{"model": object{"text": large}})
			return nil
		}
		return errors.New("no weather today")
	})
	session := f.tools(t, f.key)
	for arguments, want := range map[string]string{`{}`: "no weather today", `{"large":true}`: "larger than 4194304 bytes"} {
		answer, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "agent", Arguments: json.RawMessage(arguments)})
		check.Must(t, err)
		if text, ok := answer.Content[0].(*mcp.TextContent); !ok || !answer.IsError || !strings.Contains(text.Text, want) {
			t.Errorf("got %+v, want %q", answer, want)
		}
	}
}

// TestACallOfAToolEndsWithItsClient checks that the run of a call is cancelled when the client
// closes its connection, in each version of the protocol, and that this is no fault of the server.
func TestACallOfAToolEndsWithItsClient(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			agent := newStoppable()
			f := setUpImpatient(t, agent.answer, time.Millisecond)
			about := object{
				"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": object{},
				"io.modelcontextprotocol/clientInfo": object{"name": "test", "version": "1"},
			}
			call := object{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": object{"name": "agent", "arguments": hi()["input"], "_meta": about}}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			request := httptest.NewRequestWithContext(ctx, "POST", f.path("/mcp"), encode(t, call))
			for name, value := range map[string]string{
				"Content-Type": "application/json", auth.HeaderKey: f.key, "Mcp-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": "agent",
			} {
				request.Header.Set(name, value)
			}
			answer, answered := httptest.NewRecorder(), make(chan string, 1)
			go func() {
				f.Config.Handler.ServeHTTP(answer, request)
				answered <- answer.Body.String()
			}()
			run := receiveOr(t, agent.reached, "the run's start")
			leave()
			if got := receiveOr(t, agent.stopped, "the run's end"); got != run {
				t.Errorf("the run %s has ended, want %s", got, run)
			}
			if body := receiveOr(t, answered, "the answer"); answer.Code != http.StatusServiceUnavailable {
				t.Errorf("got %d %s, want %d, which nobody reads", answer.Code, body, http.StatusServiceUnavailable)
			}
		})
	}
}

// TestACallOfAToolReportsProgress has a client that asks for progress of a run that goes on until
// the client has heard of it twice.
func TestACallOfAToolReportsProgress(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	f := setUpImpatient(t, func(ctx context.Context, _ graph.Invocation, emit func(string, any)) error {
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		emit(graph.EventUpdates, object{"model": object{"messages": []any{message("ai", "m", "Hello")}}})
		return nil
	}, time.Millisecond)
	told := make(chan string, 1000)
	session := f.toolsOf(t, f.key, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, said *mcp.ProgressNotificationClientRequest) {
		select {
		case told <- fmt.Sprint(said.Params.ProgressToken, " ", said.Params.Progress):
		default: // the client has heard enough
		}
	}})
	call := &mcp.CallToolParams{Name: "agent", Arguments: hi()["input"]}
	call.SetProgressToken("mine")
	answered := make(chan string, 1)
	go func() {
		answer, err := session.CallTool(t.Context(), call)
		if err != nil {
			answered <- err.Error()
			return
		}
		answered <- fmt.Sprint(answer.StructuredContent)
	}()
	for _, want := range []string{"mine 1", "mine 2"} {
		if got := receiveOr(t, told, "progress"); got != want {
			t.Errorf("progress is %q, want %q", got, want)
		}
	}
	close(goOn)
	if got := receiveOr(t, answered, "the answer"); !strings.Contains(got, "Hello") {
		t.Errorf("the call ends with %s", got)
	}
}

// TestAttackSchemasOfTools lists the tools of a graph with a schema that the protocol's package
// cannot use, or that is large: the tools take any object.
func TestAttackSchemasOfTools(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		schema string
		used   bool
	}{
		"small":                   {`{"type":"object","properties":{"n":{"type":"integer"}}}`, true},
		"large":                   {`{"type":"object","description":"` + strings.Repeat("x", 64<<10) + `"}`, false},
		"capitals":                {`{"Type":"object"}`, false},
		"two types":               {`{"type":"object","type":"string"}`, false},
		"no object":               {`["type","object"]`, false},
		"header of an object":     {`{"type":"object","properties":{"a":{"type":"object","x-mcp-header":"A"}}}`, false},
		"hidden name of a header": {`{"type":"object","properties":{"a":{"type":"object","\u0078-mcp-header":"A"}}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, got := `{"type":"object"}`, marshal(toolOf(t, c.schema).InputSchema)
			if c.used {
				want = c.schema
			}
			var wanted, shown any
			check.Must(t, errors.Join(json.Unmarshal([]byte(want), &wanted), json.Unmarshal(got, &shown)))
			if diff := cmp.Diff(wanted, shown); diff != "" {
				t.Errorf("the schema (-want +got):\n%s", diff)
			}
		})
	}
}

// toolOf returns the tool of an agent whose input has a schema.
func toolOf(t *testing.T, schema string) *mcp.Tool {
	t.Helper()
	agent := graphtest.NewAgent(nil, graphtest.Token)
	agent.Describe = func(graph.Invocation) (graph.GraphDescription, bool) {
		return graph.GraphDescription{InputSchema: json.RawMessage(schema)}, true
	}
	server := httptest.NewServer(agent)
	t.Cleanup(server.Close)
	f := setUpAt(t, compute.Endpoint{URL: server.URL, Token: graphtest.Token}, 0)
	f.deploy(t, "agent")
	listed, err := f.tools(t, f.key).ListTools(t.Context(), nil)
	check.Must(t, err)
	return listed.Tools[0]
}

// TestToolsTakeATextForMessages checks that models find a text where a graph takes messages,
// without the definitions of messages, and a description.
func TestToolsTakeATextForMessages(t *testing.T) {
	t.Parallel()
	tool := toolOf(t, `{"type": "object", "title": "State", "required": ["messages"],
			"$defs": {"AIMessage": {"$ref": "#/$defs/ToolCall"}, "HumanMessage": {"type": "object"}, "ToolCall": {"type": "object"}, "Style": {"anyOf": [{"$ref": "#/$defs/Tone"}]}, "Tone": {"type": "string"}},
			"properties": {
				"messages": {"title": "Messages", "type": "array", "items": {"oneOf": [{"$ref": "#/$defs/AIMessage"}, {"$ref": "#/$defs/HumanMessage"}]}},
				"style": {"$ref": "#/$defs/Style"}, "names": {"type": "array", "items": {"type": "string"}}}}`)
	want := `{"type": "object", "title": "State", "required": ["messages"],
		"$defs": {"Style": {"anyOf": [{"$ref": "#/$defs/Tone"}]}, "Tone": {"type": "string"}},
		"properties": {
			"messages": {"title": "Messages", "type": "string", "description": "The user message to send to the agent."},
			"style": {"$ref": "#/$defs/Style"}, "names": {"type": "array", "items": {"type": "string"}}}}`
	var wanted, shown any
	check.Must(t, errors.Join(json.Unmarshal([]byte(want), &wanted), json.Unmarshal(marshal(tool.InputSchema), &shown)))
	if diff := cmp.Diff(wanted, shown); diff != "" || tool.Description != "Runs the agent agent." {
		t.Errorf("the description is %q, the schema (-want +got):\n%s", tool.Description, diff)
	}
}

// TestAttackToolsWithLongDescriptions checks that the list of all tools is bounded.
func TestAttackToolsWithLongDescriptions(t *testing.T) {
	t.Parallel()
	check.Large(t)
	f := setUp(t, nil)
	for range 18 {
		wantStatus(t, f.call(t, "POST", "/assistants", object{"graph_id": "agent", "description": strings.Repeat("𝕏", 64<<10)}), http.StatusOK)
	}
	wantDetail(t, f.call(t, "POST", "/mcp", object{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}), http.StatusBadRequest,
		"The names and descriptions of the assistants are larger than 4194304 bytes.")
}

// TestAttackToolsOfOthers checks that a client sees and calls no assistant without a right to it.
func TestAttackToolsOfOthers(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	initialize := object{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
	wantStatus(t, f.send(t, "POST", f.path("/mcp"), initialize, map[string]string{auth.HeaderKey: f.stranger}), http.StatusNotFound)
	wantStatus(t, f.send(t, "POST", f.path("/mcp"), initialize, nil), http.StatusUnauthorized)
	_, viewer, err := f.keys.Issue(t.Context(), apikey.NewKey{Workspace: f.deployment.Workspace, Role: workspace.Viewer})
	check.Must(t, err)
	answer, err := f.tools(t, viewer).CallTool(t.Context(), &mcp.CallToolParams{Name: "agent"})
	check.Must(t, err)
	if text, ok := answer.Content[0].(*mcp.TextContent); !ok || !answer.IsError || !strings.Contains(text.Text, "runs:create") {
		t.Errorf("a viewer gets %+v", answer)
	}
	wantStatus(t, f.call(t, "GET", "/mcp", nil), http.StatusMethodNotAllowed)
	wantStatus(t, f.call(t, "POST", "/mcp", []any{initialize}), http.StatusBadRequest)
}

// TestMCPAtThePathWithASlash sends messages to the path that the public server has. The own
// application of a repository may have routes below it.
func TestMCPAtThePathWithASlash(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	list := object{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
	wantBody(t, f.call(t, "POST", "/mcp/", list), f.call(t, "POST", "/mcp", list).body)
	wantStatus(t, f.call(t, "POST", "/mcp/", []any{list}), http.StatusBadRequest)
	wantStatus(t, f.send(t, "POST", f.path("/mcp/"), list, nil), http.StatusUnauthorized)
	wantStatus(t, f.call(t, "GET", "/mcp/", nil), http.StatusMethodNotAllowed)
	wantStatus(t, f.call(t, "POST", "/mcp/more", list), http.StatusNotFound)
	for _, own := range []bool{true, false} {
		routes := []graph.Route{{Pattern: "^/tools/(?P<path>.*)$"}}
		if own {
			routes = append(routes, graph.Route{Pattern: "^/mcp/(?P<path>.*)$"})
		}
		f := setUpOwnRoutes(t, build.HTTP{}, routes, quota.Limits{})
		for _, method := range []string{"POST", "GET"} {
			if got := f.call(t, method, "/mcp/", list); (got.Header.Get("X-Own") == "yes") != own {
				t.Errorf("%s, with own routes below %t: got %d %.100s", method, own, got.StatusCode, got.text)
			}
		}
		wantBody(t, f.call(t, "POST", "/mcp", list), f.call(t, "POST", "/mcp", list).body)
	}
}

// TestMCPMessagesThatCannotBeUsed checks the status and the error of JSON-RPC for messages that are
// refused. Requests have an answer of JSON-RPC with the status 200 before version 2026-07-28: the
// client mcp 1.30 for Python ends its session at the status 400.
func TestMCPMessagesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	list := object{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
	ofNow := object{"_meta": object{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": object{}}}
	for name, c := range map[string]struct {
		message object
		version string
		id      any
		code    float64
		status  int // default 400
	}{
		"without all members":           {message: object{"jsonrpc": "2.0"}, code: -32600},
		"without method":                {message: object{"jsonrpc": "2.0", "id": 1}, id: 1.0, code: -32600},
		"an empty method":               {message: object{"jsonrpc": "2.0", "id": nil, "method": ""}, code: -32601},
		"an unknown method":             {message: object{"jsonrpc": "2.0", "id": "a", "method": "x", "params": object{}}, id: "a", code: -32601, status: http.StatusOK},
		"a request without params":      {message: object{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}, id: 1.0, code: -32602, status: http.StatusOK},
		"an unknown method of 2026":     {message: object{"jsonrpc": "2.0", "id": 1, "method": "x", "params": ofNow}, version: "2026-07-28", id: 1.0, code: -32601, status: http.StatusNotFound},
		"a call without id":             {message: object{"jsonrpc": "2.0", "method": "tools/list"}, code: -32600},
		"a version that is no date":     {message: list, version: "bogus", id: 1.0, code: -32602},
		"a version of the distant past": {message: list, version: "1900-01-01", id: 1.0, code: -32600},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.status == 0 {
				c.status = http.StatusBadRequest
			}
			headers := map[string]string{auth.HeaderKey: f.key}
			if c.version != "" {
				headers["Mcp-Protocol-Version"], headers["Mcp-Method"] = c.version, "x"
			}
			answer := f.send(t, "POST", f.path("/mcp"), c.message, headers)
			wantStatus(t, answer, c.status)
			if answer.member("id") != c.id || answer.member("error", "code") != c.code || answer.member("error", "message") == "" {
				t.Errorf("got %s", answer.text)
			}
		})
	}
	wantStatus(t, f.call(t, "POST", "/mcp", object{"jsonrpc": "2.0", "id": 1, "result": object{}}), http.StatusAccepted)
	for _, method := range []string{"notifications/initialized", "notifications/of-another-time"} {
		wantStatus(t, f.call(t, "POST", "/mcp", object{"jsonrpc": "2.0", "method": method}), http.StatusAccepted)
	}
}

// TestToolsAreNotForOtherClients checks that caches between the clients and the server may not show
// the tools of one caller to another, who may see other assistants.
func TestToolsAreNotForOtherClients(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	listed, err := f.tools(t, f.key).ListTools(t.Context(), nil)
	check.Must(t, err)
	if listed.CacheScope != "private" || listed.TTLMs != 0 {
		t.Errorf("the list is cached as %+v, want private and for no time", listed.Cacheable)
	}
}
