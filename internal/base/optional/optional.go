// Package optional turns values that may be missing into pointers, as the interfaces have them, and
// back.
package optional

// Of returns nil for "", which the interfaces show as null.
func Of(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Text returns "" for nil.
func Text(text *string) string { return Or(text, "") }

// Or returns the value, or the other value if there is no value.
func Or[T any](value *T, other T) T {
	if value == nil {
		return other
	}
	return *value
}
