package web_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// widgetsDocument is a contract of a resource whose answers have ETags.
const widgetsDocument = `
openapi: 3.1.0
info: { title: Widgets, version: 0.1.0 }
paths:
  /widgets:
    get: { operationId: ListWidgets, responses: { "200": { description: Widgets. } } }
    post:
      operationId: CreateWidget
      parameters: [ { $ref: "#/components/parameters/idempotency_key" } ]
      requestBody: { content: { application/json: { schema: { type: object, properties: { text: { type: string, maxLength: 20 } } } } } }
      responses: { "201": { description: The widget., headers: { ETag: { schema: { type: string } } } } }
    delete: { operationId: DeleteWidgets, parameters: [ { name: Idempotency-Key, in: header, schema: { type: string } } ], responses: { "204": { description: Gone. } } }
  /widgets/{widget_id}:
    parameters: [ { name: widget_id, in: path, required: true, schema: { type: string } } ]
    get:
      operationId: GetWidget
      responses: { "200": { description: The widget., headers: { ETag: { schema: { type: string } } } } }
    patch:
      operationId: PatchWidget
      parameters: [ { $ref: "#/components/parameters/idempotency_key" } ]
      requestBody: { content: { application/json: { schema: { type: object, properties: { text: { type: string } } } } } }
      responses: { "200": { description: The widget., headers: { ETag: { schema: { type: string } } } } }
    delete: { operationId: DeleteWidget, parameters: [ { $ref: "#/components/parameters/idempotency_key" } ], responses: { "204": { description: Gone. } } }
  /open:
    post: { operationId: Open, security: [], responses: { "204": { description: Open. } } }
components:
  parameters:
    idempotency_key: { name: Idempotency-Key, in: header, schema: { type: string } }
`

// widgets is one widget with its handlers.
type widgets struct {
	*web.Mux
	logs *check.Log
	// counted says that the widget counts its versions, and decides about them under its lock.
	counted bool
	// handle, if it is not nil, replaces PATCH.
	handle http.HandlerFunc
	// answers is the table of the kept answers, nil if the widgets keep no answers.
	answers table.Table

	mu sync.Mutex
	// id is the internal id, which another widget of the same name does not have.
	id      string
	text    string
	version int64
	calls   int
}

func newWidgets(t testing.TB, counted bool) *widgets { return newGuardedWidgets(t, counted, nil, nil) }

// newGuardedWidgets has a guard and claims of keys before the handlers. Both may be nil.
func newGuardedWidgets(t testing.TB, counted bool, guard func(*web.Mux) web.Middleware, claim web.Claim) *widgets {
	t.Helper()
	mux, l := newMux()
	s := &widgets{Mux: mux, logs: l, counted: counted, text: "first", version: 1}
	var before web.Guard
	if guard != nil {
		before = always(guard(mux))
	}
	routes := mux.Routes(load(t, widgetsDocument), "", before).Idempotent(claim)
	// A change is registered before the read that it asks for, as generated code may do.
	routes.HandleFunc("PATCH /widgets/{widget_id}", s.patch)
	routes.HandleFunc("DELETE /widgets/{widget_id}", s.remove)
	routes.HandleFunc("GET /widgets/{widget_id}", s.get)
	routes.HandleFunc("GET /widgets", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "[]") })
	routes.HandleFunc("POST /widgets", s.patch)
	routes.HandleFunc("DELETE /widgets", s.remove)
	routes.HandleFunc("POST /open", func(w http.ResponseWriter, _ *http.Request) {
		s.called()
		w.WriteHeader(http.StatusNoContent)
	})
	return s
}

func (s *widgets) called() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	return s.calls
}

func (s *widgets) show(w http.ResponseWriter, r *http.Request, status int) {
	if s.counted {
		web.ShowVersion(r.Context(), s.id, s.version)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// Another viewer sees more: another representation of the same state.
	_ = json.NewEncoder(w).Encode(map[string]any{"text": s.text, "viewer": r.Header.Get("X-Viewer")})
}

func (s *widgets) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.PathValue("widget_id") != "1" {
		s.Error(w, r, fault.New(fault.NotFound, "There is no such widget."))
		return
	}
	s.show(w, r, http.StatusOK)
}

// allowed decides about the versions that the request expects.
func (s *widgets) allowed(w http.ResponseWriter, r *http.Request) bool {
	expected := web.ExpectedVersions(r.Context())
	if s.counted && expected != nil && !slices.Contains(expected, s.version) {
		s.Error(w, r, fault.New(fault.Stale, "It has version %d.", s.version))
		return false
	}
	return true
}

func (s *widgets) patch(w http.ResponseWriter, r *http.Request) {
	s.called()
	if s.handle != nil {
		s.handle(w, r)
		return
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		s.Error(w, r, err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.allowed(w, r) {
		return
	}
	var sent struct{ Text string }
	_ = json.Unmarshal(text, &sent)
	s.text, s.version = sent.Text, s.version+1
	status := http.StatusOK
	if r.Method == http.MethodPost {
		status = http.StatusCreated
	}
	s.show(w, r, status)
}

func (s *widgets) remove(w http.ResponseWriter, r *http.Request) {
	s.called()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.allowed(w, r) {
		w.WriteHeader(http.StatusNoContent)
	}
}
