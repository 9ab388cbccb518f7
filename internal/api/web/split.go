package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/base/publicname"
)

// mostValues is how many values of a body a schema may describe. It bounds the cost of the
// checks, and the length of the answer when each of the values is wrong; free-form parts do not
// count.
const mostValues = 20_000

// splitter turns a body's text into two trees: one to check against the schema, one to bind to the
// generated model.
//
// Parts that no schema looks into are not decoded. In the tree to check, an empty value of the
// same type stands for them; in the tree to bind they are the received text, so that numbers
// and the order of members survive.
type splitter struct {
	values int
	// ignored are the members that no schema knows, by their place.
	ignored []string
}

// object splits the members of an object. If members have equal names, the last member counts;
// unknown members are left out. A member may have the public service's spelling of its name.
func (s *splitter) object(sh *shape, members map[string]json.RawMessage, loc []any) (check, bind map[string]any) {
	check, bind = make(map[string]any, len(members)), make(map[string]any, len(members))
	for name, text := range members {
		member := sh.properties[name]
		if neutral := publicname.Neutral(name); member == nil && neutral != name && members[neutral] == nil && sh.properties[neutral] != nil {
			name, member = neutral, sh.properties[neutral]
		}
		if member == nil {
			member = sh.extra
		}
		if member == nil {
			s.ignore(append(loc, name))
			continue
		}
		check[name], bind[name] = s.value(member, text, append(loc, name))
	}
	return check, bind
}

// ignore notes a member that no schema knows, by its place in the body. Names that a header
// cannot contain, or that are longer than any name of ours, are left out.
func (s *splitter) ignore(loc []any) {
	if len(s.ignored) > mostWarnings*10 {
		return // the answer would not name more members anyway
	}
	words := make([]string, 0, len(loc)-1)
	for _, part := range loc[1:] {
		words = append(words, fmt.Sprint(part))
	}
	if place := strings.Join(words, "."); warnable.MatchString(place) {
		s.ignored = append(s.ignored, place)
	}
}

var warnable = regexp.MustCompile(`^[A-Za-z0-9_.$-]{1,200}$`)

// value splits one value, whose text is valid JSON.
func (s *splitter) value(sh *shape, text json.RawMessage, loc []any) (check, bind any) {
	if s.values++; s.values > mostValues {
		return nil, nil
	}
	text = bytes.TrimLeft(text, " \t\r\n")
	known := len(s.ignored)
	switch text[0] {
	case '{':
		check, bind = s.members(sh, text, loc)
	case '[':
		check, bind = s.items(sh, text, loc)
	case '"':
		check, bind = stringValue(sh, text)
	case 't', 'f':
		check = text[0] == 't'
		bind = check
	case 'n':
		return nil, nil
	default:
		check, bind = number(sh, text)
	}
	if sh.raw {
		bind, s.ignored = text, s.ignored[:known] // no part of it is ignored
	}
	if sh.rewritten && s.values <= mostValues {
		bind = sh.rewrite(text)
	}
	return check, bind
}

func (s *splitter) members(sh *shape, text json.RawMessage, loc []any) (check, bind any) {
	if sh.properties == nil && sh.extra == nil {
		return map[string]any{}, text
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		panic("web: valid JSON did not decode: " + err.Error())
	}
	return s.object(sh, members, loc)
}

func (s *splitter) items(sh *shape, text json.RawMessage, loc []any) (check, bind any) {
	if sh.items == nil {
		return []any{}, text
	}
	var items []json.RawMessage
	if err := json.Unmarshal(text, &items); err != nil {
		panic("web: valid JSON did not decode: " + err.Error())
	}
	checks, binds := make([]any, len(items)), make([]any, len(items))
	for i, item := range items {
		if s.values > mostValues {
			break
		}
		checks[i], binds[i] = s.value(sh.items, item, append(loc, i))
	}
	return checks, binds
}

// number binds a whole number without its fraction and its exponent.
func number(sh *shape, text json.RawMessage) (check, bind any) {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		panic("web: a number is beyond the range that was checked: " + err.Error())
	}
	if sh.integer {
		return f, json.Number(wholeNumber(text, f))
	}
	return f, json.Number(text)
}

// wholeNumber is the text of a number, without fraction and exponent if the number is whole.
func wholeNumber(text json.RawMessage, f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatInt(int64(f), 10)
	}
	return string(text)
}

func stringValue(sh *shape, text json.RawMessage) (check, bind any) {
	value := decodeString(text)
	if sh.uuid {
		return value, strings.ToLower(value)
	}
	return value, value
}

// decodeString reads a JSON string; a string without escapes is the text between the quotes.
func decodeString(text json.RawMessage) string {
	text = bytes.TrimRight(text, " \t\r\n")
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text[1 : len(text)-1])
	}
	var value string
	if err := json.Unmarshal(text, &value); err != nil {
		panic("web: valid JSON did not decode: " + err.Error())
	}
	return value
}
