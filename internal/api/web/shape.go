package web

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// shape is the part of a schema that is needed to split a body into values that are checked and
// values that are bound.
type shape struct {
	// properties and extra are the shapes of an object's members: by name, and of all other
	// members.
	properties map[string]*shape
	extra      *shape
	// items is the shape of an array's items.
	items *shape
	// raw values are bound as the received text.
	raw bool
	// rewritten values are raw values whose text is bound as rewrite returns it.
	rewritten bool
	// uuid texts are bound in lower case, the form in which ids are stored.
	uuid bool
	// integer numbers are bound without a fraction, even if they were sent with a fraction
	// ("1.0").
	integer bool
}

// keywords are the members that a schema of a request may have. An object or array whose
// members no schema describes is not decoded, so a keyword that looks into it would have no
// effect; therefore the set is closed.
var keywords = map[string]bool{
	"$ref": true, "anyOf": true, "type": true, "enum": true, "format": true,
	"properties": true, "required": true, "additionalProperties": true, "items": true,
	"minimum": true, "maximum": true, "exclusiveMinimum": true, "exclusiveMaximum": true, "multipleOf": true,
	"minLength": true, "maxLength": true, "pattern": true, "minItems": true, "maxItems": true,
	"title": true, "description": true, "default": true, "example": true, "examples": true, "deprecated": true,
}

// shape returns the shape of the schema at p. Shapes of a recursive schema are recursive.
func (l *loader) shape(p pointer, known map[string]*shape) (*shape, error) {
	if s := known[p.url()]; s != nil {
		return s, nil
	}
	s := &shape{}
	known[p.url()] = s
	if err := l.addShape(s, p, known); err != nil {
		return nil, err
	}
	return s, nil
}

// addShape adds to s the rules of the schema at p, of the schema that it refers to, and of its
// alternatives.
func (l *loader) addShape(s *shape, p pointer, known map[string]*shape) error {
	schema := object(l.document.at(p))
	if err := checkKeywords(schema, p); err != nil {
		return err
	}
	s.raw = s.raw || schema["x-go-type"] == "json.RawMessage"
	s.rewritten = s.rewritten || schema["x-rewritten"] == true
	s.uuid = s.uuid || schema["format"] == "uuid"
	s.integer = s.integer || schema["type"] == "integer" || slices.Contains(list(schema["type"]), any("integer"))
	if schema["$ref"] != nil {
		target, err := l.document.follow(p)
		if err != nil {
			return err
		}
		if err := l.addShape(s, target, known); err != nil {
			return err
		}
	}
	for i := range list(schema["anyOf"]) {
		if err := l.addShape(s, p.child("anyOf").index(i), known); err != nil {
			return err
		}
	}
	return l.addChildren(s, schema, p, known)
}

// addChildren adds the shapes of an object's members and of an array's items.
func (l *loader) addChildren(s *shape, schema map[string]any, p pointer, known map[string]*shape) (err error) {
	for _, name := range slices.Sorted(maps.Keys(object(schema["properties"]))) {
		if s.properties == nil {
			s.properties = map[string]*shape{}
		}
		if s.properties[name], err = l.shape(p.child("properties").child(name), known); err != nil {
			return err
		}
	}
	if schema["additionalProperties"] != nil {
		if s.extra, err = l.shape(p.child("additionalProperties"), known); err != nil {
			return err
		}
	}
	if schema["items"] != nil {
		if s.items, err = l.shape(p.child("items"), known); err != nil {
			return err
		}
	}
	return nil
}

func checkKeywords(schema map[string]any, p pointer) error {
	for _, keyword := range slices.Sorted(maps.Keys(schema)) {
		if !keywords[keyword] && !strings.HasPrefix(keyword, "x-") {
			return fmt.Errorf("keyword %q at %s is not among those that requests are checked for", keyword, p.url())
		}
	}
	if _, ok := schema["additionalProperties"].(bool); ok {
		return fmt.Errorf("a boolean additionalProperties at %s: unknown members are ignored everywhere", p.url())
	}
	return nil
}
