package state

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/base/match"
)

// DecodePiece decodes a piece of a message for MergePieces. It returns nil for a piece that is not
// JSON. Numbers keep their form.
func DecodePiece(raw json.RawMessage) any {
	piece, err := match.Decode(raw)
	if err != nil {
		return nil
	}
	return piece
}

// MergePieces adds a later piece of a message to the earlier piece, as the frameworks of agents do:
// texts are joined, numbers are added up, members of objects are merged, and so are elements of
// lists that have the same index. It may change the earlier piece. Of two values that do not fit
// each other, it returns the later value.
func MergePieces(earlier, later any) any {
	if earlier == nil || later == nil {
		if earlier == nil {
			return later
		}
		return earlier
	}
	switch before := earlier.(type) {
	case string:
		if more, ok := later.(string); ok {
			return before + more
		}
	case json.Number:
		if more, ok := later.(json.Number); ok {
			return sum(before, more)
		}
	case map[string]any:
		if more, ok := later.(map[string]any); ok {
			mergeMembers(before, more)
			return before
		}
	case []any:
		if more, ok := later.([]any); ok {
			return mergeElements(before, more)
		}
	}
	return later
}

// Members that are not pieces: firstOnly has those that keep their first value, whole those that
// each piece has as a whole.
var (
	firstOnly = []string{"type", "index", "created", "timestamp"}
	whole     = []string{"id", "name", "output_version", "model_provider"}
)

func mergeMembers(into, from map[string]any) {
	for name, value := range from {
		switch {
		case into[name] == nil:
			into[name] = value
		case value == nil || value == "" || slices.Contains(firstOnly, name):
		case slices.Contains(whole, name):
			into[name] = value
		default:
			into[name] = MergePieces(into[name], value)
		}
	}
}

func mergeElements(list, more []any) []any {
	for _, element := range more {
		if at := indexOf(list, element); at >= 0 {
			list[at] = MergePieces(list[at], element)
		} else {
			list = append(list, element)
		}
	}
	return list
}

// indexOf returns the index of the element to which a piece belongs, -1 if there is no such
// element: it has the same index, and not another id.
func indexOf(list []any, element any) int {
	piece, ok := element.(map[string]any)
	if !ok || !Indexed(piece) {
		return -1
	}
	id, _ := piece["id"].(string)
	return slices.IndexFunc(list, func(element any) bool {
		other, ok := element.(map[string]any)
		if !ok || !Indexed(other) || other["index"] != piece["index"] {
			return false
		}
		otherID, _ := other["id"].(string)
		return id == "" || otherID == "" || id == otherID
	})
}

// Indexed reports whether a piece has the index of the whole that it belongs to. Some providers
// send an index that is null.
func Indexed(piece map[string]any) bool {
	switch piece["index"].(type) {
	case string, json.Number:
		return true
	}
	return false
}

func sum(a, b json.Number) json.Number {
	if first, err := a.Int64(); err == nil {
		if second, err := b.Int64(); err == nil {
			return json.Number(strconv.FormatInt(first+second, 10))
		}
	}
	first, err := a.Float64()
	second, also := b.Float64()
	if err != nil || also != nil || math.IsInf(first+second, 0) {
		return b
	}
	return json.Number(strconv.FormatFloat(first+second, 'g', -1, 64))
}

// Completed returns the value that a text of JSON begins, without the parts of it that are not
// whole yet: a text that has begun counts, a name without its value does not. It returns nil if the
// text is not the beginning of a value.
func Completed(text string) json.RawMessage {
	text = strings.TrimLeft(text, " \t\r\n")
	var open []byte // the brackets that close the value
	quoted, escaped, cut := false, false, 0
	for at := range len(text) {
		switch c := text[at]; {
		case escaped:
			escaped = false
		case c == '"':
			quoted = !quoted
		case quoted:
			escaped = c == '\\'
		case c == '{' || c == '[':
			open, cut = append(open, c+2), at+1 // the brackets are two apart
		case c == ',':
			cut = at
		case c == '}' || c == ']':
			// If it closes another bracket, no text is valid.
			open, cut = open[:max(0, len(open)-1)], at+1
		}
	}
	slices.Reverse(open)
	if escaped {
		text = text[:len(text)-1]
	}
	if quoted {
		text += `"`
	}
	for _, begun := range []string{text, text[:cut]} {
		if value := append([]byte(begun), open...); json.Valid(value) {
			return value
		}
	}
	return nil
}
