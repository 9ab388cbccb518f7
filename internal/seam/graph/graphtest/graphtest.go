// Package graphtest is an agent for tests: an http.Handler that speaks the container contract
// of package graph and behaves as the test tells it. A test that holds a Go func passes it to
// NewAgent. A test that only speaks to a server sends a script along with the run, in
// `config.configurable.script`.
package graphtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// Func answers one invocation. It may emit events until it returns; each event is sent at
// once. An error becomes the `error` event, except ErrBreak. The context ends when the client
// closes the connection.
type Func func(ctx context.Context, invocation graph.Invocation, emit func(event string, data any)) error

// ErrBreak, if a Func returns it, breaks the connection as the death of an agent's process
// would.
var ErrBreak = errors.New("break the connection")

// Token is the token that an agent of Start expects.
const Token = "graphtest-token"

// Agent is the handler.
type Agent struct {
	run   Func
	token string
	mux   *http.ServeMux
	// Keeps makes the agent describe its graph as one that keeps checkpoints.
	Keeps bool
	// Rule is the repository's own authentication. It returns the JSON that answers a
	// question, or an error, which becomes a status of 500. Nil means that the repository has
	// no authentication of its own.
	Rule func(ctx context.Context, asked graph.Invocation) (string, error)

	// Embed returns the vectors of texts for the store, or an error, which becomes the Error
	// of the answer. Nil means that the repository embeds no texts.
	Embed func(graph.Texts) (graph.Embeddings, error)

	// Describe returns the description of the graph agent, or false if the agent cannot answer
	// now. Nil means that the agent gives a fixed description.
	Describe func(graph.Invocation) (graph.GraphDescription, bool)

	// App is the repository's own HTTP application, with Routes in the place of the agent
	// server's routes. Nil means that the repository has no application.
	App    http.Handler
	Routes []graph.Route
}

// NewAgent returns an agent that answers with run, and with Script if run is nil. It accepts every
// caller if token is empty.
func NewAgent(run Func, token string) *Agent {
	if run == nil {
		run = Script
	}
	agent := &Agent{run: run, token: token, mux: http.NewServeMux()}
	agent.mux.HandleFunc("GET /ping", agent.ping)
	agent.mux.HandleFunc("POST /invocations", agent.invoke)
	agent.mux.HandleFunc(graph.PathApp+"/", agent.visit)
	return agent
}

// Start serves an agent for the time of the test and returns its endpoint.
func Start(t testing.TB, run Func) compute.Endpoint {
	t.Helper()
	server := httptest.NewServer(NewAgent(run, Token))
	t.Cleanup(server.Close)
	return compute.Endpoint{URL: server.URL, Token: Token}
}

// StartKeeper serves the agent Keeper for the time of the test.
func StartKeeper(t testing.TB) compute.Endpoint {
	t.Helper()
	agent := NewAgent(Keeper, Token)
	agent.Keeps = true
	server := httptest.NewServer(agent)
	t.Cleanup(server.Close)
	return compute.Endpoint{URL: server.URL, Token: Token}
}

// ServeHTTP implements http.Handler.
func (a *Agent) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

func (a *Agent) ping(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, graph.Ping{Status: graph.Healthy, TimeOfLastUpdate: 1})
}

// visit passes a request to the application, without the header X-Slipway-Authorization. As a
// runtime, it refuses a request that is not signed.
func (a *Agent) visit(w http.ResponseWriter, r *http.Request) {
	switch {
	case a.App == nil:
		http.NotFound(w, r)
	case a.token != "" && r.Header.Get("X-Slipway-Authorization") != "Bearer "+a.token:
		http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
	case a.token != "" && r.Header.Get("X-Slipway-Signature") == "":
		http.Error(w, "the signature is missing", http.StatusUnauthorized)
	default:
		r.Header.Del("X-Slipway-Authorization")
		http.StripPrefix(graph.PathApp, a.App).ServeHTTP(w, r)
	}
}

func (a *Agent) describe(w http.ResponseWriter, asked graph.Invocation) {
	schema, drawn := json.RawMessage(`{"type":"object"}`), json.RawMessage(`{"nodes":[{"id":"agent"}],"edges":[]}`)
	inner := map[string]graph.GraphDescription{"inner": {StateSchema: schema}, "inner|deep": {StateSchema: schema}}
	described, ok := graph.GraphDescription{Checkpoints: a.Keeps, InputSchema: schema, Graph: drawn, Subgraphs: inner}, true
	if a.Describe != nil {
		described, ok = a.Describe(asked)
	}
	if !ok {
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	writeJSON(w, graph.Description{Routes: a.Routes, Graphs: map[string]graph.GraphDescription{"agent": described}})
}

func (a *Agent) invoke(w http.ResponseWriter, r *http.Request) {
	if a.token != "" && r.Header.Get("Authorization") != "Bearer "+a.token {
		http.Error(w, "the bearer token is missing or wrong", http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
	var invocation graph.Invocation
	if err := json.Unmarshal(body, &invocation); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if invocation.Operation == graph.OperationDescribe {
		a.describe(w, invocation)
		return
	}
	if invocation.Operation == graph.OperationAuthenticate || invocation.Operation == graph.OperationAuthorize {
		a.rule(r.Context(), w, invocation)
		return
	}
	if invocation.Operation == graph.OperationEmbed {
		a.embed(w, invocation)
		return
	}
	a.stream(r.Context(), w, invocation)
}

func (a *Agent) rule(ctx context.Context, w http.ResponseWriter, invocation graph.Invocation) {
	if a.Rule == nil {
		http.Error(w, "the repository has no authentication of its own", http.StatusNotFound)
		return
	}
	answer, err := a.Rule(ctx, invocation)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, answer) // a client that is gone needs no answer
}

func (a *Agent) embed(w http.ResponseWriter, invocation graph.Invocation) {
	if a.Embed == nil || invocation.Embed == nil {
		http.Error(w, "the repository embeds no texts", http.StatusNotFound)
		return
	}
	embeddings, err := a.Embed(*invocation.Embed)
	if err != nil {
		embeddings = graph.Embeddings{Error: err.Error()}
	}
	writeJSON(w, embeddings)
}

func (a *Agent) stream(ctx context.Context, w http.ResponseWriter, invocation graph.Invocation) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	if err := flush(); err != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
	emit := func(event string, data any) {
		encoded, err := json.Marshal(data)
		if err != nil {
			panic(fmt.Sprintf("encode data of event %s: %v", event, err)) // a mistake in the test
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, encoded)
		if err := flush(); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	switch err := a.run(ctx, invocation, emit); {
	case errors.Is(err, ErrBreak) || ctx.Err() != nil:
		panic(http.ErrAbortHandler)
	case err != nil:
		emit(graph.EventError, map[string]string{"error": "GraphError", "message": err.Error()})
	}
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(value); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// Step is one line of a script. A step does the actions of its fields, in the order of the
// fields here.
type Step struct {
	// Attempt limits the step to that attempt of the run; 0 means every attempt.
	Attempt int `json:"attempt,omitempty"`
	DelayMS int `json:"delay_ms,omitempty"`
	// Event and Data are sent Times times (0 means once).
	Event string `json:"event,omitempty"`
	Data  any    `json:"data,omitempty"`
	Times int    `json:"times,omitempty"`
	// Hold waits until the client closes the connection.
	Hold bool `json:"hold,omitempty"`
	// Break breaks the connection.
	Break bool `json:"break,omitempty"`
	// Error fails the graph with that message.
	Error string `json:"error,omitempty"`
}

// Script follows the steps in `config.configurable.script`. Without steps it answers "ok" as
// the node "agent", with the run and the attempt as the message's id.
func Script(ctx context.Context, invocation graph.Invocation, emit func(event string, data any)) error {
	var config struct {
		Configurable struct {
			Script []Step `json:"script"`
		} `json:"configurable"`
	}
	if len(invocation.Config) > 0 {
		if err := json.Unmarshal(invocation.Config, &config); err != nil {
			return fmt.Errorf("decode script: %w", err)
		}
	}
	if config.Configurable.Script == nil {
		emit(graph.EventUpdates, answer(invocation))
		return nil
	}
	for _, step := range config.Configurable.Script {
		if step.Attempt != 0 && step.Attempt != invocation.Attempt {
			continue
		}
		if err := step.do(ctx, emit); err != nil {
			return err
		}
	}
	return nil
}

func answer(invocation graph.Invocation) any {
	message := map[string]any{"type": "ai", "id": fmt.Sprintf("%s-%d", invocation.RunID, invocation.Attempt), "content": "ok"}
	return map[string]any{"agent": map[string]any{"messages": []any{message}}}
}

func (s Step) do(ctx context.Context, emit func(event string, data any)) error {
	if s.DelayMS > 0 {
		select {
		case <-time.After(time.Duration(s.DelayMS) * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if s.Event != "" {
		for range max(s.Times, 1) {
			emit(s.Event, s.Data)
		}
	}
	switch {
	case s.Hold:
		<-ctx.Done()
		return ctx.Err()
	case s.Break:
		return ErrBreak
	case s.Error != "":
		return errors.New(s.Error)
	}
	return nil
}
