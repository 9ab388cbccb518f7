package table

import (
	"errors"
	"fmt"
)

// Validate reports what no adapter may accept: every adapter calls it first, so that a transaction that one store would
// refuse is refused by all.
func Validate(writes []Write) error {
	if len(writes) == 0 {
		return errors.New("transaction without writes")
	}
	if len(writes) > MaxWrites {
		return fmt.Errorf("transaction of %d writes: the limit is %d", len(writes), MaxWrites)
	}
	seen := make(map[Key]bool, len(writes))
	for i, w := range writes {
		key := w.Target()
		if err := validateKey(key); err != nil {
			return fmt.Errorf("write %d: %w", i, err)
		}
		if seen[key] {
			return fmt.Errorf("write %d: key %q is written twice in one transaction", i, key)
		}
		seen[key] = true
		if err := validateWrite(w); err != nil {
			return fmt.Errorf("write %d: %w", i, err)
		}
	}
	return nil
}

func validateWrite(w Write) error {
	switch w := w.(type) {
	case Put:
		for _, key := range w.Item.Index {
			if err := validateKey(key); err != nil {
				return err
			}
		}
		return errors.Join(validateAttrs(w.Item.Attrs), validateBody(w.Item.Body))
	case Update:
		return errors.Join(validateAttrs(w.Set), validateBody(w.Body))
	case Delete:
		return nil
	case Check:
		if len(w.If.terms) == 0 {
			return errors.New("check without a condition")
		}
		return nil
	default:
		return fmt.Errorf("unknown kind of write %T", w)
	}
}

func validateKey(k Key) error {
	if k.PK == "" || k.SK == "" {
		return fmt.Errorf("key %q has an empty part", k)
	}
	return nil
}

func validateAttrs(attrs Attrs) error {
	for name, value := range attrs {
		switch value.(type) {
		case string, int64, bool:
		default:
			return fmt.Errorf("attribute %s has type %T: string, int64 or bool it must be", name, value)
		}
	}
	return nil
}

func validateBody(body []byte) error {
	if len(body) > MaxBody {
		return fmt.Errorf("body of %d bytes: the limit is %d", len(body), MaxBody)
	}
	return nil
}
