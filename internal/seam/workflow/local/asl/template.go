package asl

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// template is a payload template: JSON in which a member "name.$" takes the value that a path
// selects.
type template interface {
	build(data any, c *Context) (any, error)
}

type (
	literal struct{ value any }
	// selection is the value of a member "name.$".
	selection struct {
		field string
		path  *path
	}
	objectTemplate map[string]template
	arrayTemplate  []template
)

func (t literal) build(any, *Context) (any, error) { return t.value, nil }

func (t selection) build(data any, c *Context) (any, error) {
	value, ok := t.path.find(data, c)
	if !ok {
		return nil, runtimeError("The path '%s' of the field '%s.$' selects nothing.", t.path.text, t.field)
	}
	return value, nil
}

func (t objectTemplate) build(data any, c *Context) (any, error) {
	object := make(map[string]any, len(t))
	for name, inner := range t {
		value, err := inner.build(data, c)
		if err != nil {
			return nil, err
		}
		object[name] = value
	}
	return object, nil
}

func (t arrayTemplate) build(data any, c *Context) (any, error) {
	array := make([]any, len(t))
	for i, inner := range t {
		value, err := inner.build(data, c)
		if err != nil {
			return nil, err
		}
		array[i] = value
	}
	return array, nil
}

// templateAt compiles a payload template, which must be an object at its root.
func templateAt(s scope, text json.RawMessage) template {
	list, err := members(text)
	if err != nil {
		s.refuse("%v", err)
		return literal{}
	}
	return objectTemplateAt(s, list)
}

func objectTemplateAt(s scope, list []member) template {
	object := make(objectTemplate, len(list))
	for _, m := range list {
		name, selected := strings.CutSuffix(m.name, ".$")
		if _, twice := object[name]; twice {
			s.in(m.name).refuse("%q is given twice", name)
		}
		if selected {
			object[name] = selectionAt(s.in(m.name), name, m.value)
		} else {
			object[name] = valueTemplateAt(s.in(m.name), m.value)
		}
	}
	return object
}

func arrayTemplateAt(s scope, list []json.RawMessage) template {
	array := make(arrayTemplate, len(list))
	for i, text := range list {
		array[i] = valueTemplateAt(s.at(i), text)
	}
	return array
}

func valueTemplateAt(s scope, text json.RawMessage) template {
	switch text[0] {
	case '{':
		return templateAt(s, text)
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(text, &list); err != nil {
			s.refuse("%v", err)
		}
		return arrayTemplateAt(s, list)
	default:
		value, err := Decode(text)
		if err != nil {
			s.refuse("%v", err)
		}
		return literal{value}
	}
}

func selectionAt(s scope, field string, text json.RawMessage) template {
	p, err := pathOf(text)
	if err != nil {
		s.refuse("%v", err)
		return literal{}
	}
	return selection{field, p}
}

// pathOf reads a path from the text of a JSON string.
func pathOf(text json.RawMessage) (*path, error) {
	var value *string
	if err := json.Unmarshal(text, &value); err != nil || value == nil {
		return nil, errors.New("a path is required")
	}
	if function, _, ok := strings.Cut(*value, "("); ok && strings.HasPrefix(function, "States.") {
		return nil, fmt.Errorf("the intrinsic function %s is not implemented", function)
	}
	return compilePath(*value)
}
