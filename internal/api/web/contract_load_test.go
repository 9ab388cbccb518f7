package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/infra/openapi"
	"github.com/slipway-run/slipway/internal/api/web"
)

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"paths": {}`, `{"paths": {}} {}`, `paths: {}`, `[]`} {
		if _, err := web.Load([]byte(text), bodyLimit); err == nil || !strings.Contains(err.Error(), "parse OpenAPI document") {
			t.Errorf("%s: got error %v", text, err)
		}
	}
}

// TestDocumentsCompile finds a mistake in an operation before a client does: operations are
// compiled at their first requests.
func TestDocumentsCompile(t *testing.T) {
	t.Parallel()
	for name, document := range map[string][]byte{
		"control plane": openapi.ControlPlane, "agent server": openapi.AgentServer, "things": inJSON(t, thingsDocument),
	} {
		contract, err := web.Load(document, bodyLimit)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := contract.Compile(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	const withBody = `{openapi: 3.1.0, paths: {/a: {post: {requestBody: {content: {application/json: {schema: %s}}}}}}, components: {schemas: {Loop: {$ref: "#/components/schemas/Loop"}}}}`
	const withParameter = `{openapi: 3.1.0, paths: {/a: {get: {parameters: [%s]}}}}`
	for name, tt := range map[string]struct{ document, want string }{
		"an unchecked keyword":         {fmt.Sprintf(withBody, "{type: object, minProperties: 1}"), `keyword "minProperties"`},
		"an unchecked keyword, nested": {fmt.Sprintf(withBody, "{type: array, items: {anyOf: [{not: {}}]}}"), `keyword "not"`},
		"closed objects":               {fmt.Sprintf(withBody, "{type: object, additionalProperties: false}"), "boolean additionalProperties"},
		"a reference to nothing":       {fmt.Sprintf(withBody, `{$ref: "#/components/schemas/None"}`), "POST /a: request body"},
		"a reference to elsewhere":     {fmt.Sprintf(withBody, `{properties: {a: {$ref: "other.yaml"}}}`), "POST /a: request body"},
		"a circle of references":       {fmt.Sprintf(withBody, `{$ref: "#/components/schemas/Loop"}`), "POST /a: request body"},
		"a body that is not JSON":      {`{paths: {/a: {post: {requestBody: {content: {text/plain: {}}}}}}}`, "no schema for application/json"},
		"a cookie":                     {fmt.Sprintf(withParameter, "{name: a, in: cookie, schema: {type: string}}"), "path, query or header"},
		"a parameter without a name":   {fmt.Sprintf(withParameter, "{in: query, schema: {type: string}}"), "a name"},
		"an object as a parameter":     {fmt.Sprintf(withParameter, "{name: a, in: query, schema: {type: object}}"), "its type must be"},
		"a pattern that does not compile": {
			fmt.Sprintf(withParameter, `{name: a, in: query, schema: {type: string, pattern: "("}}`), "GET /a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := load(t, tt.document).Compile()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error: got %v, want one that contains %q", err, tt.want)
			}
		})
	}
}

// TestAnInvalidOperationIsAnError checks that an operation that does not compile does not
// affect the other operations.
func TestAnInvalidOperationIsAnError(t *testing.T) {
	t.Parallel()
	mux, l := newMux()
	routes := mux.Routes(load(t, `
paths:
  /good: { get: { parameters: [ { name: n, in: query, schema: { type: integer } } ] } }
  /bad: { get: { parameters: [ { name: n, in: query, schema: { type: object } } ] } }
`), "", nil)
	for _, pattern := range []string{"GET /good", "GET /bad"} {
		routes.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	}
	for range 2 {
		for target, want := range map[string]int{"/bad": 500, "/good": 204, "/good?n=x": 422} {
			if w := send(t, mux, http.MethodGet, target, ""); w.Code != want {
				t.Errorf("%s: got %d %s, want %d", target, w.Code, w.Body, want)
			}
		}
	}
	if got := strings.Count(l.String(), "compile operation GET /bad: parameter n"); got != 2 {
		t.Errorf("errors logged: got %d, want 2:\n%s", got, l)
	}
}

// TestFirstRequestsAtOnce checks that each of many simultaneous first requests is checked.
func TestFirstRequestsAtOnce(t *testing.T) {
	t.Parallel()
	contract := load(t, thingsDocument)
	mux, _ := newMux()
	mux.Handle("GET /openapi.json", contract)
	routes := mux.Routes(contract, "", nil)
	for _, pattern := range []string{"GET /things", "POST /things/{thing_id}", "PATCH /things/{thing_id}", "PUT /names", "GET /open"} {
		routes.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	}
	begin := make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		for _, tt := range []struct {
			method, target, body string
			want                 int
		}{
			{http.MethodGet, "/things", "", 422},
			{http.MethodGet, "/things?must=1&color=red", "", 204},
			{http.MethodPost, thingPath, `{"name":"a","inner":{"a":"x","b":1.5}}`, 422},
			{http.MethodPost, thingPath, `{"name":"a","inner":{"a":"x","b":1}}`, 204},
			{http.MethodPatch, thingPath, `{"name":"A"}`, 422},
			{http.MethodPut, "/names", `["a"]`, 204},
			{http.MethodPut, "/names", `[1]`, 422},
			{http.MethodGet, "/open", "", 204},
			{http.MethodGet, "/openapi.json", "", 200},
		} {
			all.Go(func() {
				<-begin
				if w := send(t, mux, tt.method, tt.target, tt.body); w.Code != tt.want {
					t.Errorf("%s %s %s: got %d %s, want %d", tt.method, tt.target, tt.body, w.Code, w.Body, tt.want)
				}
			})
		}
	}
	close(begin)
	all.Wait()
}
