package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// documentURL names the document inside the schema compiler; nothing is ever loaded from it.
const documentURL = "openapi:///contract.json"

// Contract is an OpenAPI document whose operations are compiled once and then check requests. It is safe for concurrent use.
type Contract struct {
	operations map[string]*operation
	published  []byte
}

// operation is what a request to one method and path must look like.
type operation struct {
	// public operations take no credentials: the document gives them an empty security list.
	public     bool
	parameters []*parameter
	body       *body
}

// Load compiles a document in YAML or JSON. bodyLimit is the most bytes that a request's body may have.
//
// A document that asks for a check which requests would not get, is an error: see [keywords].
func Load(document []byte, bodyLimit int64) (*Contract, error) {
	root, err := parseDocument(document)
	if err != nil {
		return nil, fmt.Errorf("parse OpenAPI document: %w", err)
	}
	l := &loader{document: root, compiler: jsonschema.NewCompiler(), bodyLimit: bodyLimit}
	l.compiler.DefaultDraft(jsonschema.Draft2020)
	l.compiler.AssertFormat()
	if err := l.compiler.AddResource(documentURL, map[string]any(root)); err != nil {
		return nil, fmt.Errorf("add OpenAPI document: %w", err)
	}
	operations, err := l.operations()
	if err != nil {
		return nil, err
	}
	published, err := json.Marshal(withoutExtensions(root))
	if err != nil {
		return nil, fmt.Errorf("publish OpenAPI document: %w", err)
	}
	return &Contract{operations: operations, published: published}, nil
}

// ServeHTTP answers with the document as JSON, without the members that speak to the generator.
func (c *Contract) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(c.published) // a client that is gone needs no answer
}

// check reads and validates a request, and leaves it such that the generated handler binds exactly what was checked. It writes
// nothing to w, which it needs for the connection's deadlines.
func (o *operation) check(w http.ResponseWriter, r *http.Request) error {
	problems := checkParameters(o.parameters, r)
	if o.body == nil {
		return problems.asError()
	}
	found, err := o.body.check(w, r)
	if err != nil {
		return err
	}
	return append(problems, found...).asError()
}

// loader compiles the operations of one document.
type loader struct {
	document  document
	compiler  *jsonschema.Compiler
	bodyLimit int64
}

// methods are the members of a path item that are operations.
var methods = []string{"get", "head", "post", "put", "patch", "delete", "options"}

func (l *loader) operations() (map[string]*operation, error) {
	operations := map[string]*operation{}
	paths := object(l.document["paths"])
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := object(paths[path])
		for _, method := range methods {
			if item[method] == nil {
				continue
			}
			o, err := l.operation(pointer{"paths", path, method}, item)
			if err != nil {
				return nil, fmt.Errorf("compile operation %s %s: %w", strings.ToUpper(method), path, err)
			}
			operations[strings.ToUpper(method)+" "+path] = o
		}
	}
	return operations, nil
}

func (l *loader) operation(at pointer, item map[string]any) (*operation, error) {
	definition := object(l.document.at(at))
	security, secured := definition["security"].([]any)
	o := &operation{public: secured && len(security) == 0}

	shared := at[:len(at)-1].child("parameters")
	for i := range list(item["parameters"]) {
		if err := l.addParameter(o, shared.index(i)); err != nil {
			return nil, err
		}
	}
	for i := range list(definition["parameters"]) {
		if err := l.addParameter(o, at.child("parameters").index(i)); err != nil {
			return nil, err
		}
	}
	if definition["requestBody"] == nil {
		return o, nil
	}
	body, err := l.body(at.child("requestBody"))
	if err != nil {
		return nil, fmt.Errorf("request body: %w", err)
	}
	o.body = body
	return o, nil
}
