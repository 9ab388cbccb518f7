package web

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// document is an OpenAPI document as JSON values.
type document map[string]any

// pathItem has the operations of one path, as far as they are needed to route requests.
type pathItem struct {
	// Resource is the parameter of the path that identifies the resource of its operations.
	Resource string `json:"x-resource"`

	Get, Head, Post, Put, Patch, Delete, Options *indexed
}

// indexed is an operation of a pathItem.
type indexed struct {
	// Parameters are read for one purpose: to see whether Idempotency-Key is one of them.
	Parameters []struct {
		Ref  string `json:"$ref"`
		Name string
	}
	// Permission is the permission that the caller's role must have for the operation.
	Permission string `json:"x-permission"`
	// Also is another permission that the operation needs.
	Also string `json:"x-also"`
	// NoMetadata says that the operation leaves the metadata of its resource as they are.
	NoMetadata bool `json:"x-no-metadata"`
	// Security is nil unless the operation has a list of its own.
	Security *[]json.RawMessage
	// Holding says when the operation holds its connection while it waits.
	Holding string `json:"x-holds-connection"`
	// Responses are read for two purposes: to see whether they have an ETag, and whether the
	// operation has a response for "no room".
	Responses map[string]struct {
		Headers struct{ ETag json.RawMessage }
	}
}

// tagged reports whether a successful answer has an ETag.
func (i *indexed) tagged() bool {
	return i.Responses["200"].Headers.ETag != nil || i.Responses["201"].Headers.ETag != nil
}

// stores reports whether the operation is refused when there is no room for more data.
func (i *indexed) stores() bool {
	_, documented := i.Responses["507"]
	return documented
}

// repeatable reports whether the operation takes an Idempotency-Key, as a parameter of its own
// or as the component idempotency_key.
func (i *indexed) repeatable() bool {
	for _, parameter := range i.Parameters {
		if parameter.Name == HeaderIdempotencyKey || parameter.Ref == "#/components/parameters/idempotency_key" {
			return true
		}
	}
	return false
}

// byMethod returns the operations by the names that the document has for their methods. The
// value of a missing operation is nil.
func (i pathItem) byMethod() map[string]*indexed {
	return map[string]*indexed{
		"get": i.Get, "head": i.Head, "post": i.Post, "put": i.Put, "patch": i.Patch, "delete": i.Delete, "options": i.Options,
	}
}

// pointer is a JSON pointer into a document, token by token.
type pointer []string

func (p pointer) child(name string) pointer { return append(slices.Clip(p), name) }

func (p pointer) index(i int) pointer { return p.child(strconv.Itoa(i)) }

// url returns the pointer in the form that the schema compiler expects.
func (p pointer) url() string {
	var b strings.Builder
	b.WriteString(documentURL + "#")
	for _, token := range p {
		token = strings.ReplaceAll(token, "~", "~0")
		token = strings.ReplaceAll(token, "/", "~1")
		b.WriteString("/" + url.PathEscape(token))
	}
	return b.String()
}

// parsePointer reads the fragment of a $ref or of a schema's URL.
func parsePointer(ref string) (pointer, error) {
	_, fragment, ok := strings.Cut(ref, "#/")
	if !ok {
		return nil, fmt.Errorf("reference %q does not point into the document", ref)
	}
	var p pointer
	for token := range strings.SplitSeq(fragment, "/") {
		token, err := url.PathUnescape(token)
		if err != nil {
			return nil, fmt.Errorf("reference %q: %w", ref, err)
		}
		token = strings.ReplaceAll(token, "~1", "/")
		p = append(p, strings.ReplaceAll(token, "~0", "~"))
	}
	return p, nil
}

// at returns the value that p points to, or nil.
func (d document) at(p pointer) any {
	var value any = map[string]any(d)
	for _, token := range p {
		switch v := value.(type) {
		case map[string]any:
			value = v[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// follow returns the pointer that p leads to when the objects there are references.
func (d document) follow(p pointer) (pointer, error) {
	for range 32 {
		ref, ok := object(d.at(p))["$ref"].(string)
		if !ok {
			return p, nil
		}
		next, err := parsePointer(ref)
		if err != nil {
			return nil, err
		}
		if d.at(next) == nil {
			return nil, fmt.Errorf("reference %q leads nowhere", ref)
		}
		p = next
	}
	return nil, fmt.Errorf("the references of %q form a circle", p.url())
}

// withoutExtensions returns the value without members whose names begin with "x-".
func withoutExtensions(value any) any {
	switch v := value.(type) {
	case document:
		return withoutExtensions(map[string]any(v))
	case map[string]any:
		kept := make(map[string]any, len(v))
		for name, member := range v {
			if !strings.HasPrefix(name, "x-") {
				kept[name] = withoutExtensions(member)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(v))
		for i, item := range v {
			kept[i] = withoutExtensions(item)
		}
		return kept
	}
	return value
}

// object returns the value as an object, or an empty object.
func object(value any) map[string]any {
	o, _ := value.(map[string]any)
	return o
}

// list returns the value as an array, or an empty array.
func list(value any) []any {
	l, _ := value.([]any)
	return l
}
