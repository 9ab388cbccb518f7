package web

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// rewrite returns the text of a valid value so that all programs which decode it find the values
// that were checked: of members with one name only the last is there, no unknown member has the
// name of a known member in other letters, and whole numbers have no fraction. Everything else
// stays as it was received, in the same order.
func (sh *shape) rewrite(text json.RawMessage) json.RawMessage {
	text = bytes.Trim(text, " \t\r\n")
	switch {
	case text[0] == '{' && (sh.properties != nil || sh.extra != nil):
		return sh.rewriteMembers(text)
	case text[0] == '[' && sh.items != nil:
		var parts [][]byte
		for decoder := within(text); decoder.More(); {
			parts = append(parts, sh.items.rewrite(nextValue(decoder)))
		}
		return enclosed('[', parts, ']')
	case sh.integer && (text[0] == '-' || '0' <= text[0] && text[0] <= '9'):
		f, _ := strconv.ParseFloat(string(text), 64) // the check has parsed the number before
		return json.RawMessage(wholeNumber(text, f))
	}
	return text
}

func (sh *shape) rewriteMembers(text json.RawMessage) json.RawMessage {
	var parts [][]byte
	at := map[string]int{}
	for decoder := within(text); decoder.More(); {
		name := nextName(decoder)
		value := nextValue(decoder)
		known := sh.properties[name]
		if known == nil {
			known = sh.extra
		}
		switch {
		case known != nil:
			value = known.rewrite(value)
		case sh.mistakable(name):
			continue
		}
		part := member(name, value)
		if i, twice := at[name]; twice {
			parts[i] = part
			continue
		}
		at[name] = len(parts)
		parts = append(parts, part)
	}
	return enclosed('{', parts, '}')
}

// mistakable reports whether the name is the name of a known member in other letters, which
// package encoding/json would take for the known member.
func (sh *shape) mistakable(name string) bool {
	for known := range sh.properties {
		if strings.EqualFold(known, name) {
			return true
		}
	}
	return false
}

// within returns a decoder of the members or items of a valid value.
func within(text json.RawMessage) *json.Decoder {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if _, err := decoder.Token(); err != nil {
		panic("web: valid JSON did not decode: " + err.Error())
	}
	return decoder
}

// nextName returns the next name of a member.
func nextName(decoder *json.Decoder) string {
	token, err := decoder.Token()
	name, isName := token.(string)
	if err != nil || !isName {
		panic("web: valid JSON did not decode")
	}
	return name
}

// nextValue returns the text of the next value.
func nextValue(decoder *json.Decoder) (text json.RawMessage) {
	if err := decoder.Decode(&text); err != nil {
		panic("web: valid JSON did not decode: " + err.Error())
	}
	return text
}

// member returns the text of a member of an object.
func member(name string, value json.RawMessage) []byte {
	key, err := json.Marshal(name)
	if err != nil {
		panic("web: a text has no JSON form: " + err.Error())
	}
	return bytes.Join([][]byte{key, value}, []byte{':'})
}

func enclosed(begin byte, parts [][]byte, end byte) json.RawMessage {
	text := append([]byte{begin}, bytes.Join(parts, []byte{','})...)
	return append(text, end)
}
