package asl

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// template is a payload template: JSON in which a member "name.$" takes the value that a path
// selects. It computes its value from the data.
type template func(data any) (any, error)

// objectTemplate is a template that is an object. It holds the templates of its members.
type objectTemplate map[string]template

// UnmarshalJSON implements json.Unmarshaler.
func (t *template) UnmarshalJSON(text []byte) error {
	switch text[0] {
	case '{':
		var object objectTemplate
		err := json.Unmarshal(text, &object)
		*t = object.build
		return err
	case '[':
		return errors.New("an array is not supported; supported are objects and single values")
	}
	value, err := Decode(text)
	*t = func(any) (any, error) { return value, nil }
	return err
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *objectTemplate) UnmarshalJSON(text []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil || members == nil {
		return fmt.Errorf("%s is not an object", text)
	}
	*t = make(objectTemplate, len(members))
	for _, member := range slices.Sorted(maps.Keys(members)) {
		name, selected := strings.CutSuffix(member, ".$")
		var value template
		var err error
		if selected {
			value, err = selection(name, members[member])
		} else {
			err = json.Unmarshal(members[member], &value)
		}
		if _, twice := (*t)[name]; twice {
			err = fmt.Errorf("%q is given twice", name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", member, err)
		}
		(*t)[name] = value
	}
	return nil
}

// selection reads the path of a member "name.$".
func selection(name string, text []byte) (template, error) {
	var from path
	if err := json.Unmarshal(text, &from); err != nil {
		return nil, err
	}
	return func(data any) (any, error) {
		value, ok := from.find(data)
		if !ok {
			return nil, runtimeError("The path '%s' of the field '%s.$' selects nothing.", from, name)
		}
		return value, nil
	}, nil
}

func (t objectTemplate) build(data any) (any, error) {
	object := make(map[string]any, len(t))
	for name, member := range t {
		value, err := member(data)
		if err != nil {
			return nil, err
		}
		object[name] = value
	}
	return object, nil
}
