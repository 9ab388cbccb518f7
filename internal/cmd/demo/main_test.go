package demo_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/demo"
	"github.com/slipway-run/slipway/internal/test/check"
)

// stub is a server whose answers a test sets.
type stub struct {
	// statuses are the answers to reads of the revision, one after the other, and then always
	// the last answer.
	statuses []map[string]any
	// tokens are streamed by run 1, which lasts until run 2 is requested.
	tokens []string
	// first is the final status of run 1.
	first string
	// messages are the final thread, and joined is the answer to joining run 2; if joined is
	// nil, the answer is messages.
	messages, joined []any
	// undeletable makes deleting fail.
	undeletable bool

	mu       sync.Mutex
	asked    []string
	deleted  bool
	second   chan struct{}
	revision int
}

// example returns a stub that makes no errors.
func example() *stub {
	return &stub{
		statuses: []map[string]any{{"status": "BUILDING"}, {"status": "BUILDING"}, {"status": "DEPLOYED"}},
		tokens:   []string{"I have ", "looked"},
		first:    "interrupted",
		messages: []any{
			text("human", "h1", "what's the weather in sf?"), calls("a1"), text("tool", "t1", "fog"), partial("a2", "I have looked"),
			text("human", "h2", "what's the weather in nyc?"), calls("a3"), text("tool", "t2", "rain"), text("ai", "a4", "It rains."),
		},
	}
}

func text(kind, id, content string) map[string]any {
	return map[string]any{"type": kind, "id": id, "content": content}
}

func calls(id string) map[string]any {
	message := text("ai", id, "")
	message["tool_calls"] = []any{map[string]any{"id": "c", "name": "weather", "args": map[string]any{"city": "SF"}}}
	return message
}

func partial(id, content string) map[string]any {
	message := text("ai", id, content)
	message["response_metadata"] = map[string]any{"incomplete": true}
	return message
}

// serve starts the stub and returns a configuration for it.
func (s *stub) serve(t *testing.T) demo.Config {
	t.Helper()
	s.second = make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ok", s.answer(func() any { return map[string]any{"ok": true} }))
	mux.HandleFunc("POST /v2/deployments", s.answer(func() any { return map[string]any{"id": "d", "name": "demo", "latest_revision_id": "r"} }))
	mux.HandleFunc("GET /v2/deployments/d", s.readDeployment)
	mux.HandleFunc("DELETE /v2/deployments/d", s.delete)
	mux.HandleFunc("GET /v2/deployments/d/revisions/r", s.answer(s.readRevision))
	mux.HandleFunc("POST /d/d/threads", s.answer(func() any { return map[string]any{"thread_id": "t"} }))
	mux.HandleFunc("POST /d/d/threads/t/runs/stream", s.stream)
	mux.HandleFunc("GET /d/d/threads/t/runs/1", s.answer(func() any { return map[string]any{"status": s.first} }))
	mux.HandleFunc("GET /d/d/threads/t/runs/2", s.answer(func() any { return map[string]any{"status": "success"} }))
	mux.HandleFunc("GET /d/d/threads/t/runs/1/join", s.answer(func() any { return map[string]any{"messages": s.messages} }))
	mux.HandleFunc("GET /d/d/threads/t/runs/2/join", s.answer(func() any {
		if s.joined != nil {
			return map[string]any{"messages": s.joined}
		}
		return map[string]any{"messages": s.messages}
	}))
	mux.HandleFunc("GET /d/d/threads/t/state", s.answer(func() any { return map[string]any{"values": map[string]any{"messages": s.messages}} }))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	agent := t.TempDir()
	check.Must(t, os.WriteFile(filepath.Join(agent, "framework.json"), []byte("{}"), 0o600))
	return demo.Config{
		Server: client.Server{URL: server.URL + "/", Key: "key", Tenant: "tenant"}, Agent: agent, InterruptAfter: 2, WaitTimeout: time.Minute,
	}
}

// answer answers with JSON, under the lock.
func (s *stub) answer(value func() any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, r.Method+" "+r.URL.Path)
		json.NewEncoder(w).Encode(value())
	}
}

func (s *stub) readRevision() any {
	status := s.statuses[min(s.revision, len(s.statuses)-1)]
	s.revision++
	status["id"] = "r"
	return status
}

func (s *stub) readDeployment(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deleted {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	json.NewEncoder(w).Encode(map[string]any{})
}

func (s *stub) delete(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.undeletable {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, `{"detail": "out of order"}`)
		return
	}
	s.deleted = true
	w.WriteHeader(http.StatusNoContent)
}

func (s *stub) wasDeleted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deleted
}

// stream streams run 1 to the first client, until the second client gets run 2.
func (s *stub) stream(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Strategy string `json:"multitask_strategy"`
		Input    struct {
			Messages []struct{ Content string }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Strategy != "interrupt" {
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	first := asked.Input.Messages[0].Content == "what's the weather in sf?"
	id := map[bool]string{true: "1", false: "2"}[first]
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Content-Location", "/threads/t/runs/"+id)
	send := func(name string, data any) {
		encoded, err := json.Marshal(data)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\nid: 1\n\n", name, encoded)
		if err := http.NewResponseController(w).Flush(); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	send("metadata", map[string]any{"run_id": id})
	if !first {
		close(s.second)
		send("messages", []any{text("AIMessageChunk", "a4", "It rains."), map[string]any{}})
		send("updates", map[string]any{"model": map[string]any{"messages": []any{text("ai", "a4", "It rains.")}}})
		return
	}
	send("updates|sub", map[string]any{"other": []any{1}, "model": map[string]any{"messages": []any{calls("a1")}}, "tools": map[string]any{"messages": []any{text("tool", "t1", "fog")}}})
	for _, token := range s.tokens {
		send("messages", []any{text("AIMessageChunk", "a2", token), map[string]any{}})
	}
	if len(s.tokens) >= 2 {
		select {
		case <-s.second:
		case <-r.Context().Done():
		}
	}
}
