package asl

import (
	"encoding/json"
	"strings"
)

// template is a payload template: JSON in which a member "name.$" takes the value that a path
// selects.
type template interface {
	build(data any) (any, error)
}

type (
	literal struct{ value any }
	// selection is the value of a member "name.$".
	selection struct {
		field string
		path  path
	}
	objectTemplate map[string]template
)

func (t literal) build(any) (any, error) { return t.value, nil }

func (t selection) build(data any) (any, error) {
	value, ok := t.path.find(data)
	if !ok {
		return nil, runtimeError("The path '%s' of the field '%s.$' selects nothing.", t.path, t.field)
	}
	return value, nil
}

func (t objectTemplate) build(data any) (any, error) {
	object := make(map[string]any, len(t))
	for name, inner := range t {
		value, err := inner.build(data)
		if err != nil {
			return nil, err
		}
		object[name] = value
	}
	return object, nil
}

// template takes a payload template, which must be an object at its root. It returns nil for an
// absent field.
func (f *fields) template(name string) objectTemplate {
	text, ok := f.take(name)
	if !ok {
		return nil
	}
	return objectTemplateAt(f.scope.in(name), text)
}

func objectTemplateAt(s scope, text json.RawMessage) objectTemplate {
	list, err := members(text)
	if err != nil {
		s.refuse("%v", err)
	}
	object := make(objectTemplate, len(list))
	for _, m := range list {
		name, selected := strings.CutSuffix(m.name, ".$")
		if _, twice := object[name]; twice {
			s.in(m.name).refuse("%q is given twice", name)
		}
		if selected {
			object[name] = selection{name, pathAt(s.in(m.name), m.value)}
		} else {
			object[name] = valueTemplateAt(s.in(m.name), m.value)
		}
	}
	return object
}

func valueTemplateAt(s scope, text json.RawMessage) template {
	switch text[0] {
	case '{':
		return objectTemplateAt(s, text)
	case '[':
		s.refuse("an array is not supported; supported are objects and single values")
	}
	value, err := Decode(text)
	if err != nil {
		s.refuse("%v", err)
	}
	return literal{value}
}
