package asl

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"
)

// path selects one value of the data: it holds the names of the members that lead to the value.
// The path "$" holds none, but is not nil.
type path []string

var pathForm = regexp.MustCompile(`^\$(\.[\p{L}\p{M}\p{N}_-]+)*$`)

// pathAt reads a path from the text of a JSON string.
func pathAt(s scope, text json.RawMessage) path {
	var value string
	if err := json.Unmarshal(text, &value); err != nil || !pathForm.MatchString(value) {
		s.refuse("%s is not supported; supported are paths of the form $.name.name", text)
		return nil
	}
	return strings.Split(value, ".")[1:]
}

// path takes a path. It returns nil for an absent field.
func (f *fields) path(name string) path {
	text, ok := f.take(name)
	if !ok {
		return nil
	}
	return pathAt(f.scope.in(name), text)
}

// resultPath takes the path of a result: "$", which puts it in place of the data, for an absent
// field, and nil, which puts it nowhere, for null.
func (f *fields) resultPath() path {
	text, ok := f.take("ResultPath")
	switch {
	case !ok:
		return path{}
	case string(text) == "null":
		return nil
	}
	return pathAt(f.scope.in("ResultPath"), text)
}

func (p path) String() string { return strings.Join(append([]string{"$"}, p...), ".") }

// find returns the selected value, and whether there is such a value.
func (p path) find(data any) (any, bool) {
	for _, name := range p {
		object, _ := data.(map[string]any)
		var ok bool
		if data, ok = object[name]; !ok {
			return nil, false
		}
	}
	return data, true
}

// get is find for a value that must exist.
func (p path) get(data any) (any, error) {
	value, ok := p.find(data)
	if !ok {
		return nil, runtimeError("The path '%s' selects nothing.", p)
	}
	return value, nil
}

// put returns the data with a result at the path. It copies the objects that it changes, because
// data may be shared.
func (p path) put(data, result any) (any, error) {
	switch {
	case p == nil:
		return data, nil
	case len(p) == 0:
		return result, nil
	}
	object, ok := data.(map[string]any)
	if !ok {
		return nil, &Error{Name: ErrorResultPathMatchFailure, Cause: "The result path does not fit the state's input."}
	}
	inner := object[p[0]]
	if inner == nil {
		inner = map[string]any{}
	}
	changed, err := p[1:].put(inner, result)
	if err != nil {
		return nil, err
	}
	object = maps.Clone(object)
	object[p[0]] = changed
	return object, nil
}
