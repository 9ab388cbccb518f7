package table

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Validate returns an error for writes that no adapter may accept. Every adapter calls it
// first, so that a transaction that one store would refuse is refused by all.
func Validate(writes []Write) error {
	if len(writes) == 0 {
		return errors.New("transaction without writes")
	}
	if len(writes) > MaxWrites {
		return fmt.Errorf("transaction of %d writes: the limit is %d", len(writes), MaxWrites)
	}
	for i, w := range writes {
		if w == nil {
			return fmt.Errorf("write %d: nil", i)
		}
		if err := validateWrite(w); err != nil {
			return fmt.Errorf("write %d: %w", i, err)
		}
	}
	return validateDistinct(writes)
}

// ValidateKeys returns an error for keys that no adapter's GetBatch may accept.
func ValidateKeys(keys []Key) error {
	if len(keys) > MaxWrites {
		return fmt.Errorf("batch of %d keys: the limit is %d", len(keys), MaxWrites)
	}
	for _, key := range keys {
		if err := ValidateKey(key); err != nil {
			return err
		}
	}
	return nil
}

// ValidateKey returns an error for a key that no item can have.
func ValidateKey(k Key) error {
	if k.PK == "" || k.SK == "" {
		return fmt.Errorf("key %q has an empty part", k)
	}
	if !utf8.ValidString(k.PK) || !utf8.ValidString(k.SK) {
		return fmt.Errorf("key %q is not UTF-8", k)
	}
	if size := max(len(k.PK), len(k.SK)); size > MaxKey {
		return fmt.Errorf("key with a part of %d bytes: the limit is %d", size, MaxKey)
	}
	return nil
}

// Prepare checks a query that an adapter got, reads its cursor (nil if it has none), and sets the
// limit that it may lack.
func (q Query) Prepare() (Query, *Position, error) {
	if err := validateQuery(q); err != nil {
		return q, nil, err
	}
	after, err := q.Position()
	if q.Limit == 0 {
		q.Limit = MaxLimit
	}
	return q, after, err
}

// validateQuery returns an error for a query that no adapter may accept. It does not check the
// cursor.
func validateQuery(q Query) error {
	if q.Index != "" {
		if err := validateIndex(q.Index); err != nil {
			return err
		}
	}
	if q.PK == "" {
		return errors.New("query without a partition")
	}
	if q.Limit < 0 || q.Limit > MaxLimit {
		return fmt.Errorf("query with limit %d: 1 to %d it must be", q.Limit, MaxLimit)
	}
	if q.Bytes < 0 {
		return fmt.Errorf("query for %d bytes", q.Bytes)
	}
	if q.Prefix != "" && (q.From != "" || q.To != "") {
		return errors.New("query with both a prefix and a range")
	}
	for _, text := range [...]string{q.PK, q.From, q.To, q.Prefix} {
		if !utf8.ValidString(text) {
			return fmt.Errorf("query for %q, which is not UTF-8", text)
		}
	}
	return nil
}

// validateDistinct compares pairs: there are nearly always few writes, and a set takes longer then.
func validateDistinct(writes []Write) error {
	for i := range writes {
		for j := range i {
			if writes[i].Target() == writes[j].Target() {
				return fmt.Errorf("write %d: key %q is written twice in one transaction", i, writes[i].Target())
			}
		}
	}
	return nil
}

func validateWrite(w Write) error {
	switch w := w.(type) {
	case Put:
		return errors.Join(ValidateKey(w.Item.Key), validateCond(w.If), validateAttrs(w.Item.Attrs),
			validateIndexKeys(w.Item.Index, false), validateBody(w.Item.Body))
	case Update:
		return errors.Join(ValidateKey(w.Key), validateCond(w.If), validateAttrs(w.Set), validateDisjoint(w),
			validateIndexKeys(w.Index, true), validateBody(w.Body))
	case Delete:
		return errors.Join(ValidateKey(w.Key), validateCond(w.If))
	case Check:
		if len(w.If.terms) == 0 {
			return errors.New("check without a condition")
		}
		return errors.Join(ValidateKey(w.Key), validateCond(w.If))
	default:
		return fmt.Errorf("unknown kind of write %T", w)
	}
}

// validateCond refuses values that no attribute can have: they could never be equal to an
// attribute, or could not even be compared.
func validateCond(cond Cond) error {
	for _, term := range cond.terms {
		for _, value := range term.Values {
			if err := validateValue(term.Attr, value); err != nil {
				return fmt.Errorf("condition: %w", err)
			}
		}
	}
	return nil
}

func validateAttrs(attrs Attrs) error {
	size := 0
	for name, value := range attrs {
		if err := validateValue(name, value); err != nil {
			return err
		}
		size += len(name) + 8
		if text, ok := value.(string); ok {
			size += len(text)
		}
	}
	if size > MaxAttrs {
		return fmt.Errorf("attributes of %d bytes: the limit is %d", size, MaxAttrs)
	}
	return nil
}

func validateValue(name string, value any) error {
	if name == "" {
		return errors.New("attribute without a name")
	}
	switch value := value.(type) {
	case int64, bool:
	case string:
		if !utf8.ValidString(value) {
			return fmt.Errorf("attribute %s is not UTF-8", name)
		}
	default:
		return fmt.Errorf("attribute %s has type %T: string, int64 or bool it must be", name, value)
	}
	return nil
}

// validateDisjoint refuses an update that changes one attribute in two ways, because their
// order would decide the result.
func validateDisjoint(u Update) error {
	for name := range u.Add {
		if name == "" {
			return errors.New("attribute without a name")
		}
		if _, set := u.Set[name]; set {
			return fmt.Errorf("attribute %s is both set and added to", name)
		}
	}
	for _, name := range u.Unset {
		_, set := u.Set[name]
		_, added := u.Add[name]
		if set || added {
			return fmt.Errorf("attribute %s is both unset and changed", name)
		}
	}
	return nil
}

func validateIndexKeys(keys map[Index]Key, removable bool) error {
	for index, key := range keys {
		if err := validateIndex(index); err != nil {
			return err
		}
		if removable && key == (Key{}) {
			continue
		}
		if err := ValidateKey(key); err != nil {
			return fmt.Errorf("index %s: %w", index, err)
		}
	}
	return nil
}

func validateIndex(index Index) error {
	if index != ByList && index != ByDue {
		return fmt.Errorf("unknown index %q", index)
	}
	return nil
}

func validateBody(body []byte) error {
	if len(body) > MaxBody {
		return fmt.Errorf("body of %d bytes: the limit is %d", len(body), MaxBody)
	}
	return nil
}
