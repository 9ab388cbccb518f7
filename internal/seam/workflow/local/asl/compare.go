package asl

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"
)

// comparison compiles the test that compares the value selected by variable with the operand
// in the definition.
type comparison func(at scope, variable *path, operand json.RawMessage) condition

// comparisons are the operators on a Variable. An operator Is... tests the kind of the value.
// The other operators hold only for a value of their kind.
var comparisons = makeComparisons()

func makeComparisons() map[string]comparison {
	table := map[string]comparison{
		"IsPresent":     isPresent,
		"IsNull":        is(func(value any) bool { return value == nil }),
		"IsString":      is(ofKind(asString)),
		"IsNumeric":     is(ofKind(asNumber)),
		"IsBoolean":     is(ofKind(asBoolean)),
		"IsTimestamp":   is(ofKind(asTimestamp)),
		"StringMatches": compare(asString, func(value, pattern string) bool { return wildcardMatch(pattern, value) }),

		"BooleanEquals":     compare(asBoolean, func(a, b bool) bool { return a == b }),
		"BooleanEqualsPath": comparePath(asBoolean, func(a, b bool) bool { return a == b }),
	}
	addOrder(table, "String", asString, strings.Compare)
	addOrder(table, "Numeric", asNumber, cmp.Compare[float64])
	addOrder(table, "Timestamp", asTimestamp, time.Time.Compare)
	return table
}

// addOrder adds the five comparisons of an ordered kind, each with a fixed operand and with an
// operand that a path selects.
func addOrder[T any](table map[string]comparison, kind string, as func(any) (T, bool), order func(a, b T) int) {
	for name, holds := range map[string]func(order int) bool{
		"Equals":            func(o int) bool { return o == 0 },
		"LessThan":          func(o int) bool { return o < 0 },
		"LessThanEquals":    func(o int) bool { return o <= 0 },
		"GreaterThan":       func(o int) bool { return o > 0 },
		"GreaterThanEquals": func(o int) bool { return o >= 0 },
	} {
		test := func(a, b T) bool { return holds(order(a, b)) }
		table[kind+name] = compare(as, test)
		table[kind+name+"Path"] = comparePath(as, test)
	}
}

// compare tests the variable against a fixed operand.
func compare[T any](as func(any) (T, bool), test func(a, b T) bool) comparison {
	return func(at scope, variable *path, operand json.RawMessage) condition {
		value, err := Decode(operand)
		want, ok := as(value)
		if err != nil || !ok {
			at.refuse("the operand is of the wrong kind")
			return nil
		}
		return func(input any, c *Context) (bool, error) {
			value, err := variable.get(input, c)
			if err != nil {
				return false, err
			}
			got, ok := as(value)
			return ok && test(got, want), nil
		}
	}
}

// comparePath tests the variable against an operand that a path selects.
func comparePath[T any](as func(any) (T, bool), test func(a, b T) bool) comparison {
	return func(at scope, variable *path, operand json.RawMessage) condition {
		other, err := pathOf(operand)
		if err != nil {
			at.refuse("%v", err)
			return nil
		}
		return func(input any, c *Context) (bool, error) {
			left, err := variable.get(input, c)
			if err != nil {
				return false, err
			}
			right, err := other.get(input, c)
			if err != nil {
				return false, err
			}
			a, isA := as(left)
			b, isB := as(right)
			return isA && isB && test(a, b), nil
		}
	}
}

// is compares the answer of a test with true or false.
func is(test func(any) bool) comparison {
	return func(at scope, variable *path, operand json.RawMessage) condition {
		want := booleanAt(at, operand)
		return func(input any, c *Context) (bool, error) {
			value, err := variable.get(input, c)
			if err != nil {
				return false, err
			}
			return test(value) == want, nil
		}
	}
}

// isPresent is the only operator for which the variable may select no value.
func isPresent(at scope, variable *path, operand json.RawMessage) condition {
	want := booleanAt(at, operand)
	return func(input any, c *Context) (bool, error) {
		_, present := variable.find(input, c)
		return present == want, nil
	}
}

func booleanAt(at scope, operand json.RawMessage) bool {
	var want *bool
	if err := json.Unmarshal(operand, &want); err != nil || want == nil {
		at.refuse("true or false is required")
		return false
	}
	return *want
}

func ofKind[T any](as func(any) (T, bool)) func(any) bool {
	return func(value any) bool {
		_, ok := as(value)
		return ok
	}
}

func asString(value any) (string, bool) { s, ok := value.(string); return s, ok }

func asBoolean(value any) (bool, bool) { b, ok := value.(bool); return b, ok }

func asNumber(value any) (float64, bool) {
	number, ok := value.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := number.Float64()
	return f, err == nil
}

func asTimestamp(value any) (time.Time, bool) {
	text, ok := value.(string)
	if !ok {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339, text)
	return t, err == nil
}

// wildcardMatch decides StringMatches: * stands for any text, \* for a star, \\ for a
// backslash.
func wildcardMatch(pattern, text string) bool {
	for pattern != "" {
		switch {
		case pattern[0] == '*':
			for i := 0; i <= len(text); i++ {
				if wildcardMatch(pattern[1:], text[i:]) {
					return true
				}
			}
			return false
		case pattern[0] == '\\' && len(pattern) > 1:
			pattern = pattern[1:]
		}
		if text == "" || text[0] != pattern[0] {
			return false
		}
		pattern, text = pattern[1:], text[1:]
	}
	return text == ""
}
