package record

import (
	"encoding/json"
	"fmt"
)

// Empty reports whether a JSON object, which may be missing, has no members.
func Empty(object json.RawMessage) bool {
	return len(object) == 0 || string(object) == "null" || string(object) == "{}"
}

// Merge lays the members of one JSON object over the members of another, on the first level.
// Either object may be missing. If one object has no members, the result is the other.
func Merge(below, above json.RawMessage) (json.RawMessage, error) {
	switch {
	case Empty(below):
		return above, nil
	case Empty(above):
		return below, nil
	}
	members := map[string]json.RawMessage{}
	for _, object := range []json.RawMessage{below, above} {
		if err := json.Unmarshal(object, &members); err != nil {
			return nil, fmt.Errorf("merge objects: %w", err)
		}
	}
	return Encode(members), nil
}
