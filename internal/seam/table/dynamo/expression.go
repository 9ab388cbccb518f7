package dynamo

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// maxIn is how many operands DynamoDB's IN takes.
const maxIn = 100

// expression collects the names and values that the placeholders in one write's expressions
// stand for. Every name is a placeholder, because the list of words that DynamoDB reserves is
// long and grows. The maps are nil until there is a placeholder, because DynamoDB refuses empty
// maps.
type expression struct {
	names  map[string]string // by placeholder
	short  map[string]string // by name
	values stored
	now    string
	time   int64
}

// newExpression starts the expressions of a write that is decided at a time in Unix seconds.
func newExpression(now int64) *expression { return &expression{time: now} }

func (e *expression) name(name string) string {
	if short, ok := e.short[name]; ok {
		return short
	}
	if e.names == nil {
		e.names, e.short = map[string]string{}, map[string]string{}
	}
	short := "#" + strconv.Itoa(len(e.names))
	e.names[short], e.short[name] = name, short
	return short
}

// attr is the path of one of the seam's attributes.
func (e *expression) attr(name string) string { return e.name(nameAttrs) + "." + e.name(name) }

func (e *expression) value(value types.AttributeValue) string {
	if e.values == nil {
		e.values = stored{}
	}
	short := ":" + strconv.Itoa(len(e.values))
	e.values[short] = value
	return short
}

// conjunction joins terms, and equal terms only once. It returns nil when there are no terms.
func conjunction(terms []string) *string {
	var once []string
	for _, term := range terms {
		if !slices.Contains(once, term) {
			once = append(once, term)
		}
	}
	if len(once) == 0 {
		return nil
	}
	joined := strings.Join(once, " AND ")
	return &joined
}

// alive holds when there is an item and it has not expired.
func (e *expression) alive() string {
	if e.now == "" {
		e.now = e.value(number(e.time))
	}
	return fmt.Sprintf("(attribute_exists(%[1]s) AND (attribute_not_exists(%[2]s) OR %[2]s > %[3]s))",
		e.name(namePK), e.name(nameExpires), e.now)
}

// condition returns the terms of a condition, to be joined by AND.
func (e *expression) condition(cond table.Cond) []string {
	var terms []string
	for _, term := range cond.Terms() {
		switch term.Op {
		case table.OpAbsent:
			terms = append(terms, "NOT "+e.alive())
		case table.OpPresent:
			terms = append(terms, e.alive())
		case table.OpIn:
			terms = append(terms, e.alive(), e.in(e.attr(term.Attr), term.Values))
		case table.OpBelow:
			terms = append(terms, e.alive(), e.below(e.attr(term.Attr), term.Values[0]))
		case table.OpAbsentOrBelow:
			terms = append(terms, "(NOT "+e.alive()+" OR "+e.below(e.attr(term.Attr), term.Values[0])+")")
		}
	}
	return terms
}

// in holds when the attribute is equal to one of the values.
func (e *expression) in(path string, values []any) string {
	var lists []string
	for _, alike := range byType(values) {
		for some := range slices.Chunk(alike, maxIn) {
			var operands []string
			for _, value := range some {
				operands = append(operands, e.value(scalar(value)))
			}
			lists = append(lists, path+" IN ("+strings.Join(operands, ", ")+")")
		}
	}
	switch len(lists) {
	case 0:
		return "attribute_exists(" + path + ") AND attribute_not_exists(" + path + ")" // never
	case 1:
		return lists[0]
	}
	return "(" + strings.Join(lists, " OR ") + ")"
}

// below holds when the attribute is less than an integer. An absent attribute counts as 0.
// DynamoDB compares values of one type only, so text is never below.
func (e *expression) below(path string, limit any) string {
	operand := e.value(scalar(limit))
	if n, ok := limit.(int64); !ok || n <= 0 {
		return path + " < " + operand
	}
	return fmt.Sprintf("(attribute_not_exists(%[1]s) OR %[1]s < %[2]s)", path, operand)
}

// byType groups values, because IN takes operands of one type.
func byType(values []any) [][]any {
	var texts, numbers, booleans []any
	for _, value := range values {
		switch value.(type) {
		case string:
			texts = append(texts, value)
		case int64:
			numbers = append(numbers, value)
		default:
			booleans = append(booleans, value)
		}
	}
	return [][]any{texts, numbers, booleans}
}

// summable holds when n can be added to the attribute: it is absent, or an integer whose sum
// with n fits 64 bits. DynamoDB itself adds up to 38 digits.
func (e *expression) summable(path string, n int64) string {
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	if n > 0 {
		high -= n
	} else {
		low -= n
	}
	return fmt.Sprintf("(attribute_not_exists(%[1]s) OR %[1]s BETWEEN %[2]s AND %[3]s)", path, e.value(number(low)), e.value(number(high)))
}

// sums returns the conditions for the numbers that an Update adds.
func (e *expression) sums(u table.Update) []string {
	var terms []string
	for _, name := range slices.Sorted(maps.Keys(u.Add)) {
		terms = append(terms, e.summable(e.attr(name), u.Add[name]))
	}
	return terms
}

// is holds when an attribute of the stored item has the text or number. The zero value means that
// the attribute is absent.
func is[T comparable](e *expression, name string, value T, encode func(T) types.AttributeValue) string {
	var zero T
	if value == zero {
		return "attribute_not_exists(" + e.name(name) + ")"
	}
	return e.name(name) + " = " + e.value(encode(value))
}

// update returns the update expression of an Update. If the Update has a body, ref says where
// the body goes.
func (e *expression) update(u table.Update, ref bodyRef, tx string) string {
	set := []string{e.name(nameTx) + " = " + e.value(text(tx))}
	var remove []string
	for _, name := range slices.Sorted(maps.Keys(u.Set)) {
		set = append(set, e.attr(name)+" = "+e.value(scalar(u.Set[name])))
	}
	for _, name := range slices.Sorted(maps.Keys(u.Add)) {
		path := e.attr(name)
		set = append(set, fmt.Sprintf("%[1]s = if_not_exists(%[1]s, %[2]s) + %[3]s", path, e.value(number(0)), e.value(number(u.Add[name]))))
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(u.Unset))) {
		remove = append(remove, e.attr(name))
	}
	for _, index := range indexes {
		key, named := u.Index[index]
		pk, sk := keyNames(index)
		switch {
		case named && key == table.Key{}:
			remove = append(remove, e.name(pk), e.name(sk))
		case named:
			set = append(set, e.name(pk)+" = "+e.value(text(key.PK)), e.name(sk)+" = "+e.value(text(key.SK)))
		}
	}
	if u.Body != nil {
		setBody, removeBody := e.body(u.Body, ref)
		set, remove = append(set, setBody...), append(remove, removeBody...)
	}
	if len(remove) == 0 {
		return "SET " + strings.Join(set, ", ")
	}
	return "SET " + strings.Join(set, ", ") + " REMOVE " + strings.Join(remove, ", ")
}

// body returns the parts of an update expression that replace the body, wherever the previous
// body was.
func (e *expression) body(body []byte, ref bodyRef) (set, remove []string) {
	next := stored{}
	switch {
	case ref.id != "":
		next[nameBodyID], next[nameChunks] = text(ref.id), number(int64(ref.chunks))
	case len(body) > 0:
		name, value := encodeBody(body)
		next[name] = value
	}
	for _, name := range []string{nameBody, namePacked, nameBodyID, nameChunks} {
		if value, ok := next[name]; ok {
			set = append(set, e.name(name)+" = "+e.value(value))
		} else {
			remove = append(remove, e.name(name))
		}
	}
	return set, remove
}
