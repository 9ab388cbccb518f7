package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/infra/openapi"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
)

const holdsDocument = `
openapi: 3.1.0
info: { title: Waits, version: 0.1.0 }
paths:
  /stream:
    get: { operationId: Stream, x-holds-connection: always, responses: { "200": { description: Events. } } }
  /d/{deployment_id}/threads/{thread_id}/stream:
    parameters:
      - { name: deployment_id, in: path, required: true, schema: { type: string } }
      - { name: thread_id, in: path, required: true, schema: { type: string } }
    get: { operationId: StreamThread, x-holds-connection: always, responses: { "200": { description: Events. } } }
  /join:
    get: { operationId: Join, x-holds-connection: always, responses: { "200": { description: The end. } } }
  /events:
    get: { operationId: Events, x-holds-connection: stream, responses: { "200": { description: Events. } } }
  /revision:
    get: { operationId: Revision, x-holds-connection: wait, responses: { "200": { description: The revision. } } }
  /panic:
    get: { operationId: Panic, x-holds-connection: always, responses: { "200": { description: Never. } } }
  /short:
    get: { operationId: Short, responses: { "200": { description: Soon. } } }
`

// holds is a server whose connections wait until end is closed.
type holds struct {
	*httptest.Server
	limiter *web.Limiter
	end     chan struct{}
}

func newHolds(t *testing.T, most int64) *holds {
	t.Helper()
	return newLimitedHolds(t, quota.Limits{}.With(quota.Streams, most), nil)
}

// newLimitedHolds makes the server with limits, and with the counts that it shares with others.
func newLimitedHolds(t *testing.T, limits quota.Limits, shared web.Shared) *holds {
	t.Helper()
	mux, _ := newMux()
	s := &holds{end: make(chan struct{}), limiter: web.NewLimiter(limits, web.Limits{}, clock.System)}
	s.limiter.Shared = shared
	mux.Limiter = s.limiter
	count := mux.Counted(nil)
	routes := mux.Routes(load(t, holdsDocument), "", always(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			web.ActsFor(r.Context(), r.Header.Get("X-Workspace"))
			count(next).ServeHTTP(w, r)
		})
	}))
	wait := func(ctx context.Context) error {
		select {
		case <-s.end:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	stream := func(w http.ResponseWriter, r *http.Request) {
		err := web.NewStream(w).Follow(r.Context(), time.Minute, func(ctx context.Context, send func(...web.Event) error) error {
			return errors.Join(send(web.Event{Data: []byte("1")}), wait(ctx))
		})
		if err != nil {
			mux.Error(w, r, err)
		}
	}
	routes.HandleFunc("GET /stream", stream)
	routes.HandleFunc("GET /d/{deployment_id}/threads/{thread_id}/stream", stream)
	routes.HandleFunc("GET /join", func(w http.ResponseWriter, r *http.Request) {
		err := web.Await(r.Context(), w, time.Millisecond, func(ctx context.Context) (json.RawMessage, error) { return json.RawMessage("1"), wait(ctx) })
		if err != nil {
			mux.Error(w, r, err)
		}
	})
	routes.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		if web.WantsStream(r) {
			stream(w, r)
		}
	})
	routes.HandleFunc("GET /revision", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("wait") {
			stream(w, r)
		}
	})
	routes.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { panic("a handler panics") })
	routes.HandleFunc("GET /short", func(http.ResponseWriter, *http.Request) {})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// open sends a request, and returns its answer when the answer has begun.
func (s *holds) open(t *testing.T, workspace, path, accept string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	check.Must(t, err)
	request.Header.Set("X-Workspace", workspace)
	request.Header.Set("Accept", accept)
	answer, err := s.Client().Do(request)
	check.Must(t, err)
	return answer
}

const events = "text/event-stream"

// TestAttackAWorkspaceThatOpensStreamsWithoutEnd has as many streams as its quota allows, of
// all kinds. Each gives its place back when it ends or when its client goes.
func TestAttackAWorkspaceThatOpensStreamsWithoutEnd(t *testing.T) {
	t.Parallel()
	s := newHolds(t, 4)
	ways := [][2]string{{"/stream", ""}, {"/join", ""}, {"/events", "application/json, Text/Event-Stream"}, {"/revision?wait=5", ""}}
	var open []*http.Response
	for _, way := range ways {
		answer := s.open(t, "a", way[0], way[1])
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: got %d", way[0], answer.StatusCode)
		}
		open = append(open, answer)
	}
	for _, way := range ways {
		answer := s.open(t, "a", way[0], way[1])
		var refusal struct{ Detail string }
		err := json.NewDecoder(answer.Body).Decode(&refusal)
		if answer.StatusCode != http.StatusTooManyRequests || err != nil || answer.Header.Get("Retry-After") == "" ||
			!strings.HasPrefix(refusal.Detail, "The quota streams_at_once of this workspace is used up: its limit is 4. Close connections") || !strings.Contains(refusal.Detail, "--quota streams_at_once=N") {
			t.Errorf("%s: got %d %v %+v", way[0], answer.StatusCode, answer.Header, refusal)
		}
	}
	// Requests that hold no connection go on, and other workspaces notice nothing.
	for _, way := range [][3]string{{"a", "/short"}, {"a", "/events"}, {"a", "/revision"}, {"b", "/stream"}} {
		answer := s.open(t, way[0], way[1], "")
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%v: got %d", way, answer.StatusCode)
		}
		answer.Body.Close()
	}
	open[0].Body.Close() // the client goes
	s.wantPlace(t, "a", "/stream")
	close(s.end)
	s.Close() // Close waits for all answers
	if open := s.limiter.Open(); open != 0 {
		t.Errorf("connections of %d workspaces are counted in the end", open)
	}
}

// wantPlace waits until the workspace can hold one more connection.
func (s *holds) wantPlace(t *testing.T, workspace, path string) {
	t.Helper()
	for {
		answer := s.open(t, workspace, path, events)
		if answer.StatusCode == http.StatusOK {
			return
		}
		answer.Body.Close()
	}
}

// TestStreamsSayThatTheyHoldConnections checks both contracts, so that no stream is forgotten.
func TestStreamsSayThatTheyHoldConnections(t *testing.T) {
	t.Parallel()
	for name, text := range map[string][]byte{"control plane": openapi.ControlPlane, "agent server": openapi.AgentServer} {
		var document struct {
			Paths      map[string]map[string]json.RawMessage
			Components struct{ Responses map[string]json.RawMessage }
		}
		check.Must(t, json.Unmarshal(text, &document))
		streams := 0
		for path, operations := range document.Paths {
			for method, operation := range operations {
				var o struct {
					Holds     string `json:"x-holds-connection"`
					Responses map[string]struct {
						Ref     string `json:"$ref"`
						Content map[string]any
					}
				}
				if method == "parameters" || strings.HasPrefix(method, "x-") {
					continue
				}
				check.Must(t, json.Unmarshal(operation, &o))
				if refusal := o.Responses["503"]; o.Holds != "" && refusal.Ref == "" {
					t.Errorf("%s: %s %s holds its connection, and does not say that there may be no room", name, method, path)
				}
				response := o.Responses["200"]
				shared := string(document.Components.Responses[strings.TrimPrefix(response.Ref, "#/components/responses/")])
				if response.Content[events] == nil && !strings.Contains(shared, events) {
					continue
				}
				if streams++; o.Holds == "" {
					t.Errorf("%s: %s %s streams, and does not say x-holds-connection", name, method, path)
				}
			}
		}
		if streams == 0 {
			t.Errorf("%s: no streams were found", name)
		}
	}
}

// TestAPanicGivesItsPlaceBack checks that a panic gives its place back like every other end of
// an answer.
func TestAPanicGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	s := newHolds(t, 1)
	for i := range 3 {
		if answer := s.open(t, "a", "/panic", ""); answer.StatusCode != http.StatusInternalServerError {
			t.Errorf("request %d: got %d", i, answer.StatusCode)
		}
	}
	if answer := s.open(t, "a", "/stream", events); answer.StatusCode != http.StatusOK {
		t.Errorf("got %d", answer.StatusCode)
	}
	close(s.end)
}

// TestWantsStream: a client gets a stream if it prefers it to JSON, or likes both equally.
func TestWantsStream(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/event-stream": true, "Text/Event-Stream; charset=utf-8": true,
		"application/json, text/event-stream": true, "text/event-stream, application/json": true,
		"text/event-stream;q=0": false, "text/event-stream;q=0, application/json": false, "application/json, text/event-stream;q=0.5": false,
		"application/json;q=0.5, text/event-stream;q=0.9": true, "text/event-stream;q=many": false, "not a type,, text/event-stream": true, "text/event-streams": false,
	} {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.Header.Set("Accept", accept)
		if got := web.WantsStream(request); got != want {
			t.Errorf("%q: got %t", accept, got)
		}
	}
}
