// Package match decides whether a JSON document has the members that a filter asks for, as in
// searches by metadata or values: objects match if each member of the filter matches, all
// other values if they are equal.
package match

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// Filter is a parsed filter. The zero Filter matches everything.
type Filter struct {
	wanted any
	// also is a filter that a document must match as well, nil if there is none.
	also *Filter
}

// And returns the filter of the documents that match both filters.
func (f Filter) And(other Filter) Filter {
	if f.also != nil {
		other = f.also.And(other)
	}
	f.also = &other
	return f
}

// Parse reads a filter; empty text and null are the zero Filter. The error is the error of the
// JSON decoder.
func Parse(filter json.RawMessage) (Filter, error) {
	if len(filter) == 0 {
		return Filter{}, nil
	}
	wanted, err := Decode(filter)
	if err != nil {
		return Filter{}, fmt.Errorf("read filter: %w", err)
	}
	return Filter{wanted: wanted}, nil
}

// Empty reports whether the filter matches everything.
func (f Filter) Empty() bool {
	members, ok := f.wanted.(map[string]any)
	return (f.wanted == nil || ok && len(members) == 0) && (f.also == nil || f.also.Empty())
}

// Matches reports whether a document, which must be JSON, has the members that the filter asks
// for.
func (f Filter) Matches(document json.RawMessage) (bool, error) {
	if f.Empty() {
		return true, nil
	}
	if len(document) == 0 {
		document = json.RawMessage("null")
	}
	value, err := Decode(document)
	if err != nil {
		return false, fmt.Errorf("read document: %w", err)
	}
	return f.contained(value), nil
}

func (f Filter) contained(value any) bool {
	return (f.wanted == nil || contains(value, f.wanted)) && (f.also == nil || f.also.contained(value))
}

// Decode reads a JSON value. It keeps numbers in their written form, so that large numbers that
// differ stay different.
func Decode(text json.RawMessage) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}

// contains is containment as PostgreSQL's jsonb defines it: objects by their members, lists by
// their elements in any order.
func contains(found, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		members, ok := found.(map[string]any)
		if !ok {
			return false
		}
		for name, value := range wanted {
			member, there := members[name]
			if !there || !contains(member, value) {
				return false
			}
		}
		return true
	case []any:
		elements, ok := found.([]any)
		return ok && !slices.ContainsFunc(wanted, func(value any) bool {
			return !slices.ContainsFunc(elements, func(element any) bool { return contains(element, value) })
		})
	case json.Number:
		number, ok := found.(json.Number)
		return ok && equalNumbers(number, wanted)
	default:
		return reflect.DeepEqual(found, wanted)
	}
}

func equalNumbers(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	_, exactX := a.Int64()
	_, exactY := b.Int64()
	// Two whole numbers that are written differently are different; 1 and 1.0 are equal.
	return errX == nil && errY == nil && x == y && (exactX != nil || exactY != nil)
}
