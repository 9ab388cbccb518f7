package openapi_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/slipway-run/slipway/infra/openapi"
	"github.com/slipway-run/slipway/internal/test/check"
)

// What is in the binaries is what is written in the documents: `make generate` was not forgotten.
func TestGeneratedDocumentsAreCurrent(t *testing.T) {
	t.Parallel()
	for name, generated := range map[string][]byte{"controlplane.yaml": openapi.ControlPlane, "agentserver.yaml": openapi.AgentServer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			check.Must(t, err)
			var written any
			check.Must(t, yaml.Unmarshal(text, &written))
			encoded, err := json.Marshal(written)
			check.Must(t, err)
			if diff := cmp.Diff(decoded(t, encoded), decoded(t, generated)); diff != "" {
				t.Errorf("run make generate (-document +generated):\n%s", diff)
			}
		})
	}
}

// decoded returns the members of the object that the text is.
func decoded(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var members map[string]any
	check.Must(t, json.Unmarshal(text, &members))
	return members
}

// TestExamplesAreValid compiles the schema beside each example of the control plane, and looks for
// one in each body of JSON.
func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi.ControlPlane))
	check.Must(t, err)
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	check.Must(t, compiler.AddResource("openapi:///document.json", document))
	var walk func(at string, value any)
	walk = func(at string, value any) {
		members, _ := value.(map[string]any)
		for name, member := range members {
			walk(at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), member)
		}
		if !strings.HasSuffix(at, "/content/application~1json") || strings.HasPrefix(at, "/components/") || strings.Contains(at, "/responses/4") {
			return
		}
		example, shown := members["example"]
		if !shown {
			t.Errorf("%s has no example", at)
			return
		}
		schema, err := compiler.Compile("openapi:///document.json#" + at + "/schema")
		check.Must(t, err)
		if err := schema.Validate(example); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
	walk("", document)
}

// unrepeatable operations take no Idempotency-Key.
var unrepeatable = map[string]bool{
	// What listeners do may be repeated anyway, and what they are told is for the session of the
	// moment.
	"post /v2/listeners/{listener_id}/claim": true, "post /v2/listeners/{listener_id}/heartbeat": true, "post /v2/listeners/{listener_id}/report": true,
	"post /v2/listeners/{listener_id}/releases": true, "post /v2/listeners/{listener_id}/leave": true,
	// Searches of logs change nothing.
	"post /v1/projects/{deployment_id}/deploy_logs": true, "post /v1/projects/{deployment_id}/revisions/{revision_id}/build_logs": true,
	"post /v1/projects/{deployment_id}/revisions/{revision_id}/deploy_logs": true,
}

// TestManners checks what all operations of the control plane have in common, behind the
// credentials.
func TestManners(t *testing.T) {
	t.Parallel()
	var d struct {
		Paths map[string]map[string]json.RawMessage
	}
	check.Must(t, json.Unmarshal(openapi.ControlPlane, &d))
	for path, item := range d.Paths {
		for method, text := range item {
			var o struct {
				Security   *[]any
				Parameters []struct {
					Ref string `json:"$ref"`
				}
				RequestBody *struct{}
				Responses   map[string]struct{ Headers map[string]any }
			}
			if method == "parameters" || strings.HasPrefix(method, "x-") {
				continue
			}
			check.Must(t, json.Unmarshal(text, &o))
			if o.Security != nil && len(*o.Security) == 0 {
				continue
			}
			takes := map[string]bool{}
			for _, parameter := range o.Parameters {
				takes[strings.TrimPrefix(parameter.Ref, "#/components/parameters/")] = true
			}
			_, limited := o.Responses["429"]
			_, notModified := o.Responses["304"]
			_, stale := o.Responses["412"]
			_, bounded := o.Responses["413"]
			_, typed := o.Responses["415"]
			_, tagged := o.Responses["200"].Headers["ETag"]
			switch {
			case !limited:
				t.Errorf("%s %s does not say that it may be refused with 429", method, path)
			case o.RequestBody != nil && (!bounded || !typed):
				t.Errorf("%s %s has a body, and does not say that it may be refused with 413 and 415", method, path)
			case method == "get" && (tagged != notModified || tagged != takes["if_none_match"]):
				t.Errorf("%s %s: an ETag, If-None-Match and 304 belong together", method, path)
			case takes["idempotency_key"] != (method != "get" && !unrepeatable[method+" "+path]) || takes["if_match"] != stale:
				t.Errorf("%s %s: it needs an Idempotency-Key; If-Match and 412 belong together", method, path)
			}
		}
	}
}

// TestClientsCanBeGenerated names what generators of clients leave out of a client, with all
// operations that need it: lists that do not say of what, and objects without a name within objects
// that may be null (openapi-python-client).
func TestClientsCanBeGenerated(t *testing.T) {
	t.Parallel()
	for name, text := range map[string][]byte{"controlplane": openapi.ControlPlane, "agentserver": openapi.AgentServer} {
		var walk func(at string, value any, nullable bool)
		walk = func(at string, value any, nullable bool) {
			if list, ok := value.([]any); ok {
				for _, member := range list {
					walk(at, member, nullable)
				}
			}
			schema, _ := value.(map[string]any)
			if is(schema, "array") && schema["items"] == nil {
				t.Errorf("%s: %s: a list needs items", name, at)
			}
			object := is(schema, "object")
			if object && nullable {
				t.Errorf("%s: %s: an object within an object that may be null needs a name", name, at)
			}
			for key, member := range schema {
				walk(at+"/"+key, member, nullable || object && is(schema, "null") && schema["properties"] != nil)
			}
		}
		for key, schema := range decoded(t, text)["components"].(map[string]any)["schemas"].(map[string]any) {
			walk(key, schema, false)
		}
	}
}

// is reports whether the values that a schema describes may have a type.
func is(schema map[string]any, kind string) bool {
	kinds, _ := schema["type"].([]any)
	return schema["type"] == kind || slices.Contains(kinds, any(kind))
}
