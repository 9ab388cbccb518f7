package web

import (
	"bytes"
	"encoding/json"
)

// OneOrMany is a list that clients may also send as its only element: `"values"` means
// `["values"]`.
type OneOrMany[T any] []T

// UnmarshalJSON reads a list, one element, or null.
func (l *OneOrMany[T]) UnmarshalJSON(data []byte) error {
	if text := bytes.TrimSpace(data); len(text) > 0 && text[0] == '[' || string(text) == "null" {
		return json.Unmarshal(data, (*[]T)(l))
	}
	var one T
	if err := json.Unmarshal(data, &one); err != nil {
		return err
	}
	*l = OneOrMany[T]{one}
	return nil
}
