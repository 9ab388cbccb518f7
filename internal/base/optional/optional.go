// Package optional turns texts that may be missing into pointers, as the interfaces have them, and
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
func Text(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
