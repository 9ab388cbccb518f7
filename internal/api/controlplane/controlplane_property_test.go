package controlplane_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/base/sse"
	"github.com/slipway-run/slipway/internal/test/check"
)

const endlessOperations = "Operations that wait or stream keep to the served document, whatever they are sent: what it allows is not refused for its shape, what it forbids is, " +
	"and every answer is one that it has."

// served is the document of a server, which defines the allowed requests and answers.
type served struct {
	root     map[string]any
	compiler *jsonschema.Compiler
	known    map[string]*jsonschema.Schema
}

const servedAt = "openapi:///document.json"

func (f *fixture) served(t *testing.T) *served {
	t.Helper()
	answer := f.send(t, "GET", "/openapi.json", nil, nil)
	wantStatus(t, answer, http.StatusOK)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer.text))
	check.Must(t, err)
	s := &served{root: document.(map[string]any), compiler: jsonschema.NewCompiler(), known: map[string]*jsonschema.Schema{}}
	s.compiler.DefaultDraft(jsonschema.Draft2020)
	s.compiler.AssertFormat()
	check.Must(t, s.compiler.AddResource(servedAt, document))
	return s
}

// at follows the document, and references in it, and returns the value and its place.
func (s *served) at(t *rapid.T, pointer string) (value any, where string) {
	value = any(s.root)
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		name := strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch of := value.(type) {
		case map[string]any:
			value = of[name]
		case []any:
			i, err := strconv.Atoi(name)
			check.Must(t, err)
			value = of[i]
		}
		where += "/" + part
		if of, ok := value.(map[string]any); ok && of["$ref"] != nil {
			value, where = s.at(t, strings.TrimPrefix(of["$ref"].(string), "#"))
		}
	}
	return value, where
}

// allows checks a value against the schema at a place of the document.
func (s *served) allows(t *rapid.T, pointer string, value any) error {
	schema, ok := s.known[pointer]
	if !ok {
		var err error
		if schema, err = s.compiler.Compile(servedAt + "#" + pointer); err != nil {
			t.Fatal(err)
		}
		s.known[pointer] = schema
	}
	return schema.Validate(value)
}

// parameter is a parameter of an operation, with its value in a request.
type parameter struct{ name, in, text string }

// drawParameters gives values to some of the operation's parameters; the document allows some
// of these values.
func (s *served) drawParameters(t *rapid.T, operation string) (drawn []parameter, allowed bool) {
	allowed = true
	list, where := s.at(t, operation+"/parameters")
	all, _ := list.([]any)
	for i := range all {
		of, at := s.at(t, fmt.Sprintf("%s/%d", where, i))
		p := of.(map[string]any)
		given := parameter{name: p["name"].(string), in: p["in"].(string)}
		// The document does not restrict a position; the handler refuses a wrong position.
		if given.name == "cursor" || given.name == "Last-Event-ID" || !rapid.Bool().Draw(t, given.name+" is given") {
			continue
		}
		schema := p["schema"].(map[string]any)
		var value any
		switch choices, _ := schema["enum"].([]any); {
		case schema["type"] == "integer":
			number := rapid.OneOf(rapid.IntRange(-2, 3), rapid.IntRange(-4000, 4000)).Draw(t, given.name)
			value, given.text = json.Number(strconv.Itoa(number)), strconv.Itoa(number)
			if rapid.IntRange(0, 4).Draw(t, given.name+" is a word") == 0 {
				given.text = rapid.StringMatching(`[a-z]{1,5}`).Draw(t, given.name)
				value = given.text
			}
		case len(choices) > 0:
			given.text = rapid.SampledFrom([]string{choices[0].(string), choices[len(choices)-1].(string), "neither"}).Draw(t, given.name)
			value = given.text
		default:
			given.text = rapid.StringMatching(`[a-z0-9-]{1,40}`).Draw(t, given.name)
			value = given.text
		}
		allowed = s.allows(t, at+"/schema", value) == nil && allowed
		drawn = append(drawn, given)
	}
	return drawn, allowed
}

// drawValue makes a JSON value. It leaves out values that clients of other tools send in place
// of another type, which the server understands: null, numbers in texts.
func drawValue(t *rapid.T, name string) any {
	return rapid.OneOf(
		rapid.Map(rapid.IntRange(-3, 25), func(i int) any { return json.Number(strconv.Itoa(i)) }),
		rapid.Map(rapid.StringMatching(`[ -~]{0,12}[a-z]`), func(s string) any { return s }),
		rapid.Map(rapid.IntRange(100, 400), func(n int) any { return strings.Repeat("x", n) }),
		rapid.SampledFrom([]any{"", []any{}, map[string]any{}}),
	).Draw(t, name)
}

// endless describes a request to an operation that waits or streams, so that a test need not
// wait.
type endless struct {
	method, path string
	// at is the address of an existing resource, body makes a body.
	at   string
	body func(t *rapid.T) map[string]any
}

// TestOperationsThatWaitKeepToTheDocument sends to these operations values that the document
// allows and values that it does not allow. schemathesis does the same for all other
// operations; here it would wait.
func TestOperationsThatWaitKeepToTheDocument(t *testing.T) {
	t.Parallel()
	rule(t, endlessOperations)
	auth := setUpAuth(t, func(c *controlplane.Config) { c.WaitLimit = time.Millisecond }).stage(t)
	s := auth.listenerStage(t)
	deployment, created := s.create(t, fromImage("weather"))
	revision := "/revisions/" + created.id("latest_revision_id")
	// A client of this revision then need not wait.
	wantStatus(t, s.call(t, "POST", deployment+revision+"/cancel", nil), http.StatusOK)
	s.settleCancelled(t, created.id("id"))
	for name, o := range map[string]endless{
		"events":                 {method: "GET", path: "/v2/events", at: "/v2/events"},
		"events of a deployment": {method: "GET", path: "/v2/deployments/{deployment_id}/events", at: deployment + "/events"},
		"a revision":             {method: "GET", path: "/v2/deployments/{deployment_id}/revisions/{revision_id}", at: deployment + revision},
		"a user's consent":       {method: "GET", path: "/v2/auth/wait/{auth_id}", at: "/v2/auth/wait/" + auth.pending},
		"work for a listener": {method: "POST", path: "/v2/listeners/{listener_id}/claim", at: s.path + "/claim", body: func(t *rapid.T) map[string]any {
			// It is the holder of the session, and does not wait.
			body := map[string]any{"holder": "a", "wait": json.Number("0")}
			for _, member := range []string{"holder", "wait", "version"} {
				switch rapid.IntRange(0, 3).Draw(t, member+" is") {
				case 0:
					body[member] = drawValue(t, member)
					if seconds, err := strconv.Atoi(fmt.Sprint(body[member])); err == nil && member == "wait" && seconds > 0 && seconds <= 20 {
						body[member] = json.Number("0") // no longer wait is allowed
					}
				case 1:
					if member != "wait" { // without this member the wait would be the longest
						delete(body, member)
					}
				}
			}
			return body
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document := s.served(t)
			rapid.Check(t, func(r *rapid.T) { s.keepsTo(r, document, o) })
		})
	}
}

// keepsTo sends one request, and checks the answer against the document.
func (s *listenerStage) keepsTo(t *rapid.T, document *served, o endless) {
	operation := "/paths/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(o.path) + "/" + strings.ToLower(o.method)
	given, allowed := document.drawParameters(t, operation)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var body io.Reader
	if o.body != nil {
		content := o.body(t)
		text, err := json.Marshal(content)
		check.Must(t, err)
		allowed = document.allows(t, operation+"/requestBody/content/application~1json/schema", content) == nil && allowed
		body = bytes.NewReader(text)
	}
	query := url.Values{}
	request, err := http.NewRequestWithContext(ctx, o.method, s.URL+rapid.SampledFrom(bases).Draw(t, "base")+o.at, body)
	check.Must(t, err)
	streams := strings.HasSuffix(o.path, "/events") && rapid.Bool().Draw(t, "as a stream")
	for name, value := range s.own.with("Content-Type", "application/json", "Accept", map[bool]string{true: "text/event-stream", false: "application/json"}[streams]) {
		request.Header.Set(name, value)
	}
	for _, p := range given {
		if p.in == "query" {
			query.Set(p.name, p.text)
		} else {
			request.Header.Set(p.name, p.text)
		}
	}
	request.URL.RawQuery = query.Encode()
	answer, err := s.Client().Do(request)
	check.Must(t, err)
	defer answer.Body.Close()
	if refused := answer.StatusCode == http.StatusUnprocessableEntity; refused == allowed {
		t.Fatalf("the document allows it: %v; got %d", allowed, answer.StatusCode)
	}
	document.holds(t, operation, answer, streams && query.Get("from") == "now")
}

// holds checks that the document has this answer. It reads nothing of a silent stream, and the
// first event of any other stream.
func (s *served) holds(t *rapid.T, operation string, answer *http.Response, silent bool) {
	status := strconv.Itoa(answer.StatusCode)
	known, where := s.at(t, operation+"/responses/"+status)
	if known == nil || answer.StatusCode >= http.StatusInternalServerError {
		t.Fatalf("the document has no answer %s", status)
	}
	if answer.StatusCode == http.StatusNotModified {
		return
	}
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	content, _ := known.(map[string]any)["content"].(map[string]any)
	if err != nil || content[kind] == nil {
		t.Fatalf("an answer %s has the type %q (%v)", status, kind, err)
	}
	schema := where + "/content/" + strings.ReplaceAll(kind, "/", "~1") + "/schema"
	text := io.Reader(answer.Body)
	if kind == "text/event-stream" {
		if silent {
			return
		}
		events := sse.NewReader(answer.Body, 1<<20)
		defer events.Release()
		event, err := events.Next()
		if err != nil || event.Name == "" || event.ID == "" {
			t.Fatalf("got the event %+v (%v)", event, err)
		}
		text, schema = bytes.NewReader(slices.Clone(event.Data)), "/components/schemas/Event"
	}
	value, err := jsonschema.UnmarshalJSON(text)
	check.Must(t, err)
	if err := s.allows(t, schema, value); err != nil {
		t.Fatalf("an answer %s is not as the document says: %v", status, err)
	}
}
