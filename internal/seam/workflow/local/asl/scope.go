package asl

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
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
		quoted, _ := json.Marshal(value) // text can always be encoded
		return quoted[1 : len(quoted)-1]
	})
}

// fields are the members of an object whose names the language fixes. Each field must be read
// before done is called.
type fields struct {
	scope  scope
	list   []member
	values map[string]json.RawMessage
	// supported are the names that were read, whether or not the object has such a field.
	supported []string
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
	f.supported = append(f.supported, name)
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

// done reports the fields that were not read, and names the fields that are supported.
func (f *fields) done() {
	slices.Sort(f.supported)
	for _, m := range f.list {
		if _, left := f.values[m.name]; left {
			f.scope.in(m.name).refuse("not supported; supported are %s", strings.Join(f.supported, ", "))
		}
	}
}

// require reports the fields of these names that are missing.
func (f *fields) require(names ...string) {
	for _, name := range names {
		if _, ok := f.values[name]; !ok {
			f.scope.in(name).refuse("missing")
		}
	}
}

// text takes a string that is not empty. It returns "" for an absent field.
func (f *fields) text(name string) string {
	raw, ok := f.take(name)
	if !ok {
		return ""
	}
	var value string
	if err := json.Unmarshal(raw, &value); err != nil || value == "" {
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

// objects takes a non-empty array of objects. It returns nil for an absent field.
func (f *fields) objects(name string) []*fields {
	raw, ok := f.take(name)
	if !ok {
		return nil
	}
	at := f.scope.in(name)
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		at.refuse("a non-empty array is required")
	}
	var objects []*fields
	for i, text := range list {
		if object, ok := objectAt(at.at(i), text); ok {
			objects = append(objects, object)
		}
	}
	return objects
}
