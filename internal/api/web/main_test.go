package web_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/oapi-codegen/runtime"
	"gopkg.in/yaml.v3"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/test/check"
)

// thingsDocument is a contract with every keyword that a request may use.
const thingsDocument = `
openapi: 3.1.0
info: { title: Things, version: 0.1.0 }
paths:
  /things:
    get:
      operationId: ListThings
      parameters:
        - { name: limit, in: query, schema: { type: integer, minimum: 1, maximum: 100 } }
        - { name: ratio, in: query, schema: { type: number, exclusiveMaximum: 1 } }
        - { name: all, in: query, schema: { type: boolean } }
        - { name: color, in: query, schema: { $ref: "#/components/schemas/Color" } }
        - { name: mode, in: query, schema: { type: array, maxItems: 3, items: { $ref: "#/components/schemas/Color" } } }
        - { name: sizes, in: query, schema: { type: array, items: { type: integer } } }
        - { name: tags, in: query, schema: { type: array, items: { type: string } } }
        - { name: X-Trace, in: header, schema: { type: string, maxLength: 4 } }
        - { name: must, in: query, required: true, schema: { type: string } }
      responses: { "200": { description: Things. } }
  /things/{thing_id}:
    parameters:
      - { name: thing_id, in: path, required: true, schema: { type: string, format: uuid } }
    post:
      operationId: MakeThing
      requestBody:
        required: true
        content: { application/json: { schema: { $ref: "#/components/schemas/Thing" } } }
      responses: { "200": { description: The thing. } }
    patch:
      operationId: PatchThing
      requestBody: { content: { application/json: { schema: { $ref: "#/components/schemas/Thing" } } } }
      responses: { "200": { description: The thing. } }
  /open:
    get: { operationId: GetOpen, security: [], responses: { "204": { description: Open. } } }
  /closed:
    get: { operationId: GetClosed, security: [ { ApiKey: [] } ], responses: { "204": { description: Closed. } } }
  /names:
    put:
      operationId: PutNames
      requestBody: { required: true, content: { application/json: { schema: { type: array, items: { type: string } } } } }
      responses: { "204": { description: Done. } }
components:
  schemas:
    Color: { type: string, enum: [red, green, blue] }
    Shade: { type: string, enum: [dark] }
    Inner:
      type: object
      required: [a, b]
      properties: { a: { type: string }, b: { type: integer }, c: { type: [string, "null"] } }
    Thing:
      type: object
      required: [name]
      properties:
        name: { type: string, minLength: 1, maxLength: 8, pattern: "^[a-z]*$" }
        text: { type: [string, "null"] }
        pad: { type: string, minLength: 2 }
        owner: { type: [string, "null"], format: uuid }
        at: { type: string, format: date-time }
        url: { type: string, format: uri }
        link: { type: string, format: uri-reference }
        flag: { type: boolean }
        framework_note: { type: string }
        count: { type: integer, minimum: 0, maximum: 10 }
        ratio: { type: number, exclusiveMinimum: 0, exclusiveMaximum: 1, multipleOf: 0.1 }
        color: { $ref: "#/components/schemas/Color" }
        shade: { anyOf: [ { $ref: "#/components/schemas/Shade" }, { type: "null" } ] }
        inner: { anyOf: [ { $ref: "#/components/schemas/Inner" }, { type: "null" } ] }
        inners: { type: array, items: { $ref: "#/components/schemas/Inner" } }
        few: { type: array, minItems: 1, maxItems: 2, items: { type: string } }
        labels: { type: [object, "null"], additionalProperties: { type: string } }
        free: { type: [object, "null"], x-go-type: json.RawMessage }
        any: { x-go-type: json.RawMessage }
        spec: { anyOf: [ { $ref: "#/components/schemas/Inner" }, { type: "null" } ], x-go-type: json.RawMessage }
        nodes:
          anyOf:
            - { type: array, items: { type: string } }
            - { type: string, enum: ["*"] }
            - { type: "null" }
        nothing: { type: "null" }
        maybe: { anyOf: [ { type: "null" }, { type: string } ] }
        oddity: { type: string, format: ipv4 }
`

// thing is the model that a generator would make of Thing, with the members that the tests
// bind.
type thing struct {
	Name   string                `json:"name"`
	Text   *string               `json:"text,omitempty"`
	Note   *string               `json:"framework_note,omitempty"`
	Owner  *string               `json:"owner,omitempty"`
	Count  *int                  `json:"count,omitempty"`
	Ratio  *float64              `json:"ratio,omitempty"`
	Inner  *inner                `json:"inner,omitempty"`
	Labels map[string]string     `json:"labels,omitempty"`
	Free   json.RawMessage       `json:"free,omitempty"`
	Any    json.RawMessage       `json:"any,omitempty"`
	Spec   json.RawMessage       `json:"spec,omitempty"`
	Nodes  web.OneOrMany[string] `json:"nodes,omitempty"`
}

type inner struct {
	A string  `json:"a"`
	B int     `json:"b"`
	C *string `json:"c,omitempty"`
}

const (
	thingPath = "/things/019a7d4e-0000-7000-8000-000000000001"
	bodyLimit = 1 << 20
)

func newMux() (*web.Mux, *check.Log) {
	l := &check.Log{}
	return web.NewMux(slog.New(slog.NewTextHandler(l, nil))), l
}

func load(t testing.TB, document string) *web.Contract {
	t.Helper()
	contract, err := web.Load(inJSON(t, document), bodyLimit)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return contract
}

// inJSON returns a YAML text, which is easier to read in a test, as JSON.
func inJSON(t testing.TB, document string) []byte {
	t.Helper()
	var tree map[string]any
	if err := yaml.Unmarshal([]byte(document), &tree); err != nil {
		t.Fatalf("YAML: %v", err)
	}
	text, err := json.Marshal(tree)
	check.Must(t, err)
	return text
}

// newThings serves thingsDocument: operations with a body echo the thing that they bound,
// ListThings echoes its query.
func newThings(t testing.TB) *web.Mux {
	t.Helper()
	return newThingsOf(t, thingsDocument)
}

// newThingsOf serves a document that begins as thingsDocument does.
func newThingsOf(t testing.TB, document string) *web.Mux {
	t.Helper()
	mux, _ := newMux()
	routes := mux.Routes(load(t, document), "", nil)
	echo := func(w http.ResponseWriter, r *http.Request) {
		var bound *thing
		if err := runtime.BindJSONBody(r, &bound); err != nil && err != io.EOF {
			mux.RequestError(w, r, err)
			return
		}
		writeJSON(t, w, bound)
	}
	routes.HandleFunc("POST /things/{thing_id}", echo)
	routes.HandleFunc("PATCH /things/{thing_id}", echo)
	routes.HandleFunc("GET /things", func(w http.ResponseWriter, r *http.Request) { writeJSON(t, w, r.URL.Query()) })
	routes.HandleFunc("PUT /names", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return mux
}

func writeJSON(t testing.TB, w http.ResponseWriter, value any) {
	t.Helper()
	if err := json.NewEncoder(w).Encode(value); err != nil {
		t.Errorf("encode response: %v", err)
	}
}

// send makes a request with a JSON body, or without a body when it is empty, and returns the
// response.
func send(t testing.TB, handler http.Handler, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, reader)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// detail is one problem as clients see it: its place written with slashes.
type detail struct{ Loc, Type, Msg string }

// problemsOf reads the body of a 422.
func problemsOf(t testing.TB, w *httptest.ResponseRecorder) []detail {
	t.Helper()
	if w.Code != http.StatusUnprocessableEntity {
		t.Fatalf("status: got %d %s, want 422", w.Code, w.Body)
	}
	var answer struct{ Detail []fault.Detail }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("body %s: %v", w.Body, err)
	}
	var found []detail
	for _, d := range answer.Detail {
		loc, err := json.Marshal(d.Loc)
		check.Must(t, err)
		found = append(found, detail{string(loc), d.Type, d.Msg})
	}
	return found
}

// always returns the guard that puts the same middleware before all operations.
func always(m web.Middleware) web.Guard { return func(web.Operation) web.Middleware { return m } }
