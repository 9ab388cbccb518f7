package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/match"
)

// Filter is a parsed filter of a search. A member is compared with the same member of the
// value: for equality, or by operators ({"$gt": 3}), which must all hold. Other objects are
// filters of the member.
type Filter struct{ members map[string]any }

// ParseFilter reads a filter: a JSON object, or nothing. An unknown operator is a fault.Invalid.
func ParseFilter(text json.RawMessage) (Filter, error) {
	if len(text) == 0 {
		return Filter{}, nil
	}
	parsed, err := match.Decode(text)
	if err != nil {
		return Filter{}, fmt.Errorf("read filter: %w", err)
	}
	members, _ := parsed.(map[string]any) // or null
	return Filter{members}, checkFilter(members, "filter")
}

func checkFilter(value any, at string) error {
	if elements, ok := value.([]any); ok {
		for i, element := range elements {
			if err := checkFilter(element, fmt.Sprintf("%s.%d", at, i)); err != nil {
				return err
			}
		}
		return nil
	}
	members, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	isOperation := hasOperator(members)
	for name, member := range members {
		if isOperation && operators[name] == nil {
			return fault.New(fault.Invalid, "%.200s: %.100q is no operator: $eq, $ne, $gt, $gte, $lt and $lte are.", at, name)
		}
		if !isOperation {
			if err := checkFilter(member, at+"."+name); err != nil {
				return err
			}
		}
	}
	return nil
}

func hasOperator(members map[string]any) bool {
	for name := range members {
		if strings.HasPrefix(name, "$") {
			return true
		}
	}
	return false
}

// Matches reports whether a value, which must be a JSON object, passes the filter.
func (f Filter) Matches(value json.RawMessage) (bool, error) {
	if len(f.members) == 0 {
		return true, nil
	}
	actual, err := match.Decode(value)
	if err != nil {
		return false, fmt.Errorf("read value: %w", err)
	}
	return matches(actual, f.members), nil
}

func matches(actual, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		if hasOperator(wanted) {
			for name, operand := range wanted {
				if !operators[name](actual, operand) {
					return false
				}
			}
			return true
		}
		members, ok := actual.(map[string]any)
		if !ok {
			return false
		}
		for name, member := range wanted {
			// An absent member is null, as in the framework's own store.
			if !matches(members[name], member) {
				return false
			}
		}
		return true
	case []any:
		elements, ok := actual.([]any)
		return ok && slices.EqualFunc(elements, wanted, matches)
	default:
		return same(actual, wanted)
	}
}

// operators compare a member of a value with an operand. Values that cannot be ordered are
// neither more nor less.
var operators = map[string]func(actual, operand any) bool{
	"$eq":  same,
	"$ne":  func(actual, operand any) bool { return !same(actual, operand) },
	"$gt":  func(actual, operand any) bool { order, ok := compare(actual, operand); return ok && order > 0 },
	"$gte": func(actual, operand any) bool { order, ok := compare(actual, operand); return ok && order >= 0 },
	"$lt":  func(actual, operand any) bool { order, ok := compare(actual, operand); return ok && order < 0 },
	"$lte": func(actual, operand any) bool { order, ok := compare(actual, operand); return ok && order <= 0 },
}

func same(a, b any) bool {
	if order, ok := compare(a, b); ok {
		return order == 0
	}
	return reflect.DeepEqual(a, b)
}

// compare orders two numbers, or two texts.
func compare(a, b any) (order int, ok bool) {
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return strings.Compare(a, b), ok
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return 0, false
		}
		if a == b {
			return 0, true
		}
		if x, err := a.Int64(); err == nil {
			if y, err := b.Int64(); err == nil {
				return cmp.Compare(x, y), true
			}
		}
		x, errX := a.Float64()
		y, errY := b.Float64()
		return cmp.Compare(x, y), errX == nil && errY == nil
	default:
		return 0, false
	}
}
