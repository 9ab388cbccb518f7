package openapi_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/slipway-run/slipway/infra/openapi"
)

// What is in the binaries is what is written in the documents: `make generate` was not forgotten.
func TestGeneratedDocumentsAreCurrent(t *testing.T) {
	t.Parallel()
	for name, generated := range map[string][]byte{"controlplane.yaml": openapi.ControlPlane, "agentserver.yaml": openapi.AgentServer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var written any
			if err := yaml.Unmarshal(text, &written); err != nil {
				t.Fatal(err)
			}
			encoded, err := json.Marshal(written)
			if err != nil {
				t.Fatal(err)
			}
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
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	return members
}

// TestPagesAreCurrent compares what a page was made from with what is there now.
func TestPagesAreCurrent(t *testing.T) {
	t.Parallel()
	for name, page := range map[string][]byte{"controlplane.yaml": openapi.ControlPlaneDocs(), "agentserver.yaml": openapi.AgentServerDocs()} {
		document, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf(`<meta name="document" content="%x">`, sha256.Sum256(document)); !bytes.Contains(page, []byte(want)) {
			t.Errorf("%s: run make generate, the page is of another document", name)
		}
		for tag, file := range map[string]string{"style": "docs/page.css", "script": "docs/page.js"} {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			// A browser compares the digest of the element's text with the policy.
			_, rest, _ := bytes.Cut(page, []byte("<"+tag+">"))
			inside, _, _ := bytes.Cut(rest, []byte("</"+tag+">"))
			digest := sha256.Sum256(inside)
			allowed := "'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) + "'"
			if policy := openapi.DocsPolicy; !bytes.Equal(inside, text) || !strings.Contains(policy, allowed) {
				t.Errorf("%s: run make generate, the page has another %s than %s, or the policy does not allow it", name, tag, file)
			}
		}
	}
}

// TestPagesNeedNothingElse looks for what a browser would load.
func TestPagesNeedNothingElse(t *testing.T) {
	t.Parallel()
	loads := regexp.MustCompile(`(?i)<(link|img|iframe|object|embed|base|form)\b|\b(src|action)=|\b(url|import)\(|@import|\bon[a-z]+="|<[a-z]+ [^>]*style=`)
	for name, page := range map[string][]byte{"controlplane": openapi.ControlPlaneDocs(), "agentserver": openapi.AgentServerDocs()} {
		for _, found := range loads.FindAll(page, -1) {
			t.Errorf("%s: %s", name, found)
		}
	}
}

// TestPagesShowEverything looks for an anchor of each operation and each schema, and for links that lead nowhere.
func TestPagesShowEverything(t *testing.T) {
	t.Parallel()
	anchors := regexp.MustCompile(`id="([^"]+)"`)
	links := regexp.MustCompile(`href="#([^"]+)"`)
	for document, page := range map[*[]byte][]byte{&openapi.ControlPlane: openapi.ControlPlaneDocs(), &openapi.AgentServer: openapi.AgentServerDocs()} {
		var d struct {
			Info       struct{ Title string }
			Paths      map[string]map[string]json.RawMessage
			Components struct{ Schemas map[string]json.RawMessage }
		}
		if err := json.Unmarshal(*document, &d); err != nil {
			t.Fatal(err)
		}
		there := map[string]int{}
		for _, anchor := range anchors.FindAllSubmatch(page, -1) {
			there[string(anchor[1])]++
		}
		for path, item := range d.Paths {
			for method, text := range item {
				var operation struct{ OperationID string }
				if method == "parameters" {
					continue
				}
				if err := json.Unmarshal(text, &operation); err != nil {
					t.Fatal(err)
				}
				if there[operation.OperationID] != 1 {
					t.Errorf("%s: %s %s is there %d times", d.Info.Title, method, path, there[operation.OperationID])
				}
			}
		}
		for name := range d.Components.Schemas {
			if there["schema-"+name] != 1 {
				t.Errorf("%s: schema %s is there %d times", d.Info.Title, name, there["schema-"+name])
			}
		}
		for _, link := range links.FindAllSubmatch(page, -1) {
			if there[string(link[1])] == 0 {
				t.Errorf("%s: a link leads to #%s, which is not there", d.Info.Title, link[1])
			}
		}
	}
}

// TestExamplesAreValid compiles the schema beside each example of the control plane, and looks for one in each body of JSON.
func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi.ControlPlane))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource("openapi:///document.json", document); err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(example); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
	walk("", document)
}

// unrepeatable operations take no Idempotency-Key.
var unrepeatable = map[string]bool{
	// What listeners do may be repeated anyway, and what they are told is for the session of the moment.
	"post /v2/listeners/{listener_id}/claim": true, "post /v2/listeners/{listener_id}/heartbeat": true, "post /v2/listeners/{listener_id}/report": true,
	"post /v2/listeners/{listener_id}/releases": true, "post /v2/listeners/{listener_id}/leave": true,
	// Searches of logs change nothing.
	"post /v1/projects/{deployment_id}/deploy_logs": true, "post /v1/projects/{deployment_id}/revisions/{revision_id}/build_logs": true,
	"post /v1/projects/{deployment_id}/revisions/{revision_id}/deploy_logs": true,
}

// TestManners checks what all operations of the control plane have in common, behind the credentials.
func TestManners(t *testing.T) {
	t.Parallel()
	var d struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(openapi.ControlPlane, &d); err != nil {
		t.Fatal(err)
	}
	for path, item := range d.Paths {
		for method, text := range item {
			var o struct {
				Security   *[]any
				Parameters []struct {
					Ref string `json:"$ref"`
				}
				Responses map[string]struct{ Headers map[string]any }
			}
			if method == "parameters" {
				continue
			}
			if err := json.Unmarshal(text, &o); err != nil {
				t.Fatal(err)
			}
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
			_, tagged := o.Responses["200"].Headers["ETag"]
			switch {
			case !limited:
				t.Errorf("%s %s does not say that it may be refused with 429", method, path)
			case method == "get" && (tagged != notModified || tagged != takes["if_none_match"]):
				t.Errorf("%s %s: an ETag, If-None-Match and 304 belong together", method, path)
			case takes["idempotency_key"] != (method != "get" && !unrepeatable[method+" "+path]) || takes["if_match"] != stale:
				t.Errorf("%s %s: it needs an Idempotency-Key; If-Match and 412 belong together", method, path)
			}
		}
	}
}
