package table

import "slices"

// Cond is a conjunction of terms about one item. The zero Cond always holds.
type Cond struct{ terms []Term }

// Op is the kind of a term: it says which test the term makes.
type Op int

const (
	// OpAbsent holds when there is no item under the key.
	OpAbsent Op = iota
	// OpPresent holds when there is an item under the key.
	OpPresent
	// OpIn holds when the attribute is present and equal to one of the values.
	OpIn
	// OpBelow holds when there is an item and its attribute is an integer below the value. An
	// absent attribute counts as 0.
	OpBelow
	// OpAbsentOrBelow holds when there is no item under the key, or when OpBelow holds.
	OpAbsentOrBelow
)

// Term is one part of a condition.
type Term struct {
	Op     Op
	Attr   string
	Values []any
}

// Absent holds when there is no item under the key.
func Absent() Cond { return Cond{[]Term{{Op: OpAbsent}}} }

// Present holds when there is an item under the key.
func Present() Cond { return Cond{[]Term{{Op: OpPresent}}} }

// Equals holds when the attribute is present and has the value.
func Equals(attr string, value any) Cond { return In(attr, value) }

// In holds when the attribute is present and has one of the values.
func In(attr string, values ...any) Cond {
	return Cond{[]Term{{Op: OpIn, Attr: attr, Values: values}}}
}

// Below holds when there is an item under the key and the attribute is an integer less than the
// limit; an absent attribute counts as 0, as it does in Update.Add.
func Below(attr string, limit int64) Cond {
	return Cond{[]Term{{Op: OpBelow, Attr: attr, Values: []any{limit}}}}
}

// AbsentOrBelow holds when there is no item under the key, or when the item fulfils Below.
func AbsentOrBelow(attr string, limit int64) Cond {
	return Cond{[]Term{{Op: OpAbsentOrBelow, Attr: attr, Values: []any{limit}}}}
}

// All holds when all of the conditions hold.
func All(conds ...Cond) Cond {
	var all Cond
	for _, c := range conds {
		all.terms = append(all.terms, c.terms...)
	}
	return all
}

// Terms returns the parts, for adapters that translate them.
func (c Cond) Terms() []Term { return c.terms }

// Holds decides the condition on the item that stands under the key. item is nil if there is
// no item.
func (c Cond) Holds(item *Item) bool {
	for _, term := range c.terms {
		if !term.holds(item) {
			return false
		}
	}
	return true
}

func (t Term) holds(item *Item) bool {
	switch t.Op {
	case OpAbsent:
		return item == nil
	case OpPresent:
		return item != nil
	case OpIn:
		return item != nil && item.Attrs[t.Attr] != nil && slices.Contains(t.Values, item.Attrs[t.Attr])
	case OpBelow:
		return item != nil && below(item.Attrs[t.Attr], t.Values[0])
	case OpAbsentOrBelow:
		return item == nil || below(item.Attrs[t.Attr], t.Values[0])
	}
	return true
}

func below(value, limit any) bool {
	if value == nil {
		value = int64(0)
	}
	n, ok := value.(int64)
	most, known := limit.(int64)
	return ok && known && n < most
}
