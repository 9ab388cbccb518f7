package asl

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// scope is a place in a definition. Problems are reported with their place.
type scope struct {
	machine, state, field string
	substitutions         map[string]string
	problems              *[]error
}

// of returns the place of a state.
func (s scope) of(state string) scope {
	s.state, s.field = state, ""
	return s
}

// in returns the place of a field of the present place.
func (s scope) in(field string) scope {
	if s.field != "" {
		field = s.field + "." + field
	}
	s.field = field
	return s
}

// at returns the place of an element of the present field.
func (s scope) at(index int) scope {
	s.field = fmt.Sprintf("%s[%d]", s.field, index)
	return s
}

// refuse reports a problem at the place.
func (s scope) refuse(format string, args ...any) {
	place := []string{"machine " + s.machine}
	if s.state != "" {
		place = append(place, "state "+s.state)
	}
	if s.field != "" {
		place = append(place, "field "+s.field)
	}
	*s.problems = append(*s.problems, errors.New(strings.Join(place, ", ")+": "+fmt.Sprintf(format, args...)))
}

var placeholder = regexp.MustCompile(`\$\{([^}]*)\}`)

// substitute replaces each ${Name} in the text of a field.
func (s scope) substitute(text json.RawMessage) json.RawMessage {
	return placeholder.ReplaceAllFunc(text, func(match []byte) []byte {
		name := string(match[2 : len(match)-1])
		value, ok := s.substitutions[name]
		if !ok {
			s.refuse("the substitution ${%s} is not supplied", name)
			return match
		}
		quoted, err := json.Marshal(value)
		if err != nil {
			s.refuse("the substitution ${%s} is not text: %v", name, err)
			return match
		}
		return quoted[1 : len(quoted)-1]
	})
}

// fields are the members of an object whose names the language fixes. Each field must be read
// before done is called.
type fields struct {
	scope  scope
	list   []member
	values map[string]json.RawMessage
	// substitutes is set for the fields of a state: ${Name} is replaced in their texts.
	substitutes bool
}

// objectAt reads the fields of an object, and reports text that is not an object.
func objectAt(s scope, text json.RawMessage) (*fields, bool) {
	list, err := members(text)
	if err != nil {
		s.refuse("%v", err)
		return nil, false
	}
	f := &fields{scope: s, list: list, values: make(map[string]json.RawMessage, len(list))}
	for _, m := range list {
		f.values[m.name] = m.value
	}
	return f, true
}

// take returns a field's text, only once.
func (f *fields) take(name string) (json.RawMessage, bool) {
	text, ok := f.values[name]
	delete(f.values, name)
	if !ok {
		return nil, false
	}
	if f.substitutes {
		text = f.scope.in(name).substitute(text)
	}
	return text, true
}

// done reports the fields that were not read.
func (f *fields) done() {
	for _, m := range f.list {
		if _, left := f.values[m.name]; left {
			f.scope.in(m.name).refuse("unknown here, or not implemented")
		}
	}
}

// text takes a string. It returns "" for an absent field.
func (f *fields) text(name string) string {
	raw, ok := f.take(name)
	if !ok {
		return ""
	}
	var value *string
	if err := json.Unmarshal(raw, &value); err != nil || value == nil {
		f.scope.in(name).refuse("a string is required")
		return ""
	}
	return *value
}

// requiredText takes a string that must be present and not empty.
func (f *fields) requiredText(name string) string {
	if _, ok := f.values[name]; !ok {
		f.scope.in(name).refuse("missing")
		return ""
	}
	value := f.text(name)
	if value == "" {
		f.scope.in(name).refuse("a non-empty string is required")
	}
	return value
}

// integer takes an integer between two bounds. It returns the given number for an absent
// field.
func (f *fields) integer(name string, least, most, absent int64) int64 {
	raw, ok := f.take(name)
	if !ok {
		return absent
	}
	var value *int64
	if err := json.Unmarshal(raw, &value); err != nil || value == nil || *value < least || *value > most {
		f.scope.in(name).refuse("an integer from %d to %d is required", least, most)
		return absent
	}
	return *value
}

// array takes a non-empty array. It returns nil for an absent field.
func (f *fields) array(name string) []json.RawMessage {
	raw, ok := f.take(name)
	if !ok {
		return nil
	}
	return arrayAt(f.scope.in(name), raw)
}

func arrayAt(s scope, raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		s.refuse("a non-empty array is required")
		return nil
	}
	return list
}
