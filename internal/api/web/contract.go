package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// documentURL names the document inside the schema compiler; nothing is ever loaded from it.
const documentURL = "openapi:///contract.json"

// Contract is an OpenAPI document that requests are checked against. It is safe for concurrent use.
//
// Loading a contract only reads the list of its operations: a function that starts for one
// request should not compile schemas that the request does not need. An operation's schemas are
// compiled at its first request. So the document is not read by the validator of kin-openapi, which
// resolves the whole document when it loads it.
type Contract struct {
	operations map[string]*operation
	loader     func() (*loader, error)
	published  func() ([]byte, error)
}

// Operation is the information that a guard needs about an operation of a contract.
type Operation struct {
	// Pattern is its method and path, as in "GET /v2/deployments/{deployment_id}".
	Pattern string
	// Public operations take no credentials: the document gives them an empty security list.
	Public bool
	// Permission is the operation's x-permission, "" if it has no permission.
	Permission string
	// Also is the operation's x-also: another permission that it needs, "" if there is no other.
	Also string
	// NoMetadata is the operation's x-no-metadata: it changes a resource, but not the metadata.
	NoMetadata bool
	// Resource is the x-resource of the operation's path: the path parameter that identifies
	// the resource. It is "" if the path has no x-resource.
	Resource string
}

// operation describes what a request to one method and path must look like.
type operation struct {
	Operation
	// tagged operations answer with an ETag.
	tagged bool
	// repeatable operations take an Idempotency-Key.
	repeatable bool
	// stores marks operations that add data: the document says that they answer 507.
	stores bool
	// holding says when the operation holds its connection, "" if it never does.
	holding string
	checks  func() (*checks, error)
}

// checks is the compiled form of an operation.
type checks struct {
	parameters []*parameter
	body       *body
}

// Load reads a document in JSON. bodyLimit is the most bytes that a request's body may have.
//
// The document's schemas are validated only when they are compiled: see [Contract.Compile].
func Load(document []byte, bodyLimit int64) (*Contract, error) {
	// Reading this part takes much less time than reading the document.
	var routing struct{ Paths map[string]pathItem }
	if err := json.Unmarshal(document, &routing); err != nil {
		return nil, fmt.Errorf("parse OpenAPI document: %w", err)
	}
	c := &Contract{
		operations: map[string]*operation{},
		loader:     sync.OnceValues(func() (*loader, error) { return newLoader(document, bodyLimit) }),
	}
	c.published = sync.OnceValues(c.publish)
	for path, item := range routing.Paths {
		for method, indexedOperation := range item.byMethod() {
			if indexedOperation != nil {
				c.add(method, path, item.Resource, indexedOperation)
			}
		}
	}
	return c, nil
}

// add adds an operation, which is compiled when its checks are used for the first time.
func (c *Contract) add(method, path, resource string, indexedOperation *indexed) {
	pattern := strings.ToUpper(method) + " " + path
	c.operations[pattern] = &operation{
		Operation: Operation{
			Pattern: pattern, Public: indexedOperation.Security != nil && len(*indexedOperation.Security) == 0,
			Permission: indexedOperation.Permission, Also: indexedOperation.Also, NoMetadata: indexedOperation.NoMetadata, Resource: resource,
		},
		tagged:     indexedOperation.tagged(),
		repeatable: indexedOperation.repeatable(),
		stores:     indexedOperation.stores(),
		holding:    indexedOperation.Holding,
		checks: sync.OnceValues(func() (*checks, error) {
			l, err := c.loader()
			if err != nil {
				return nil, err
			}
			compiled, err := l.checks(pointer{"paths", path, method})
			if err != nil {
				return nil, fmt.Errorf("compile operation %s: %w", pattern, err)
			}
			return compiled, nil
		}),
	}
}

// Operations returns the operations in the order of their patterns.
func (c *Contract) Operations() []Operation {
	var all []Operation
	for _, pattern := range slices.Sorted(maps.Keys(c.operations)) {
		all = append(all, c.operations[pattern].Operation)
	}
	return all
}

func (c *Contract) publish() ([]byte, error) {
	l, err := c.loader()
	if err != nil {
		return nil, err
	}
	return json.Marshal(withoutExtensions(l.document))
}

// ServeHTTP answers with the document as JSON, without the members that are for the generator.
func (c *Contract) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	published, err := c.published()
	if err != nil {
		panic("web: the document does not encode: " + err.Error()) // it was decoded from JSON
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(published) // a client that is gone needs no answer
}

// check reads and validates a request. Afterwards the generated handler binds exactly the
// checked values. The header is the header of the answer; it names the parts of the request
// that are not used.
func (o *operation) check(r *http.Request, h http.Header) error {
	compiled, err := o.checks()
	if err != nil {
		return err
	}
	problems := checkParameters(compiled.parameters, r)
	if compiled.body == nil {
		return problems.asError()
	}
	problem, ignored, err := compiled.body.check(r)
	if err != nil {
		return err
	}
	warnOf(ignored, h)
	return append(problems, problem...).asError()
}

// warnOf tells a client which members of its body are ignored (RFC 9111, section 5.5): most
// often a name is misspelt, or belongs to another release.
func warnOf(ignored []string, h http.Header) {
	if len(ignored) == 0 {
		return
	}
	slices.Sort(ignored)
	ignored = slices.Compact(ignored)
	more := ""
	if len(ignored) > mostWarnings {
		more = fmt.Sprintf(" and %d more", len(ignored)-mostWarnings)
		ignored = ignored[:mostWarnings]
	}
	h.Set("Warning", fmt.Sprintf("299 - \"unknown and ignored: %s%s\"", strings.Join(ignored, ", "), more))
}

// mostWarnings is how many members a warning names.
const mostWarnings = 10

// loader compiles the operations of one document, one at a time: the compiler is not safe for
// concurrent use.
type loader struct {
	document  document
	bodyLimit int64
	// arrival is how long a body may take to arrive.
	arrival time.Duration

	mu       sync.Mutex
	compiler *jsonschema.Compiler
}

func newLoader(text []byte, bodyLimit int64) (*loader, error) {
	// UnmarshalJSON keeps numbers in the form that the schema compiler expects.
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parse OpenAPI document: %w", err)
	}
	l := &loader{document: object(root), bodyLimit: bodyLimit, arrival: arrivalTime, compiler: jsonschema.NewCompiler()}
	l.compiler.DefaultDraft(jsonschema.Draft2020)
	l.compiler.AssertFormat()
	if err := l.compiler.AddResource(documentURL, root); err != nil {
		return nil, fmt.Errorf("add OpenAPI document: %w", err)
	}
	return l, nil
}

// checks compiles the operation at a place of the document.
func (l *loader) checks(at pointer) (*checks, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	compiled := &checks{}
	// Parameters of the path come first.
	for _, owner := range []pointer{at[:len(at)-1], at} {
		parameters := owner.child("parameters")
		for i := range list(l.document.at(parameters)) {
			p, err := l.parameter(parameters.index(i))
			if err != nil {
				return nil, err
			}
			compiled.parameters = append(compiled.parameters, p)
		}
	}
	if l.document.at(at.child("requestBody")) == nil {
		return compiled, nil
	}
	body, err := l.body(at.child("requestBody"))
	if err != nil {
		return nil, fmt.Errorf("request body: %w", err)
	}
	compiled.body = body
	return compiled, nil
}
