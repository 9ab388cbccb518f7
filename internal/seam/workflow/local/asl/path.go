package asl

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
)

// path selects one value of the data: it holds the names of the members that lead to the value.
// The path "$" holds none, but is not nil.
type path []string

var pathForm = regexp.MustCompile(`^\$(\.[\p{L}\p{M}\p{N}_-]+)*$`)

// UnmarshalJSON implements json.Unmarshaler.
func (p *path) UnmarshalJSON(text []byte) error {
	var value string
	if err := json.Unmarshal(text, &value); err != nil || !pathForm.MatchString(value) {
		return fmt.Errorf("%s is not supported; supported are paths of the form $.name.name", text)
	}
	*p = strings.Split(value, ".")[1:]
	return nil
}

// resultPath is where a result is put: by default in the place of the data.
type resultPath struct {
	path path
	// nowhere is set for null: the data stay as they are.
	nowhere bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *resultPath) UnmarshalJSON(text []byte) error {
	if r.nowhere = string(text) == "null"; r.nowhere {
		return nil
	}
	return json.Unmarshal(text, &r.path)
}

func (r resultPath) put(data, result any) (any, error) {
	if r.nowhere {
		return data, nil
	}
	return r.path.put(data, result)
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
	if len(p) == 0 {
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
