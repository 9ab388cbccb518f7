package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A state may be large, while a step changes little of it. So a text is cut into its parts
// without decoding them: the scanner finds the ends of values only by their brackets and
// quotes. A part that was cut out is then compared with a part that is known to be valid, or
// canonical checks it.

var errText = errors.New("text is not JSON")

// scanner reads a JSON text.
type scanner struct {
	text []byte
	at   int
}

// space skips white space.
func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// take skips white space and the byte b, if b is next. It reports whether it was.
func (s *scanner) take(b byte) bool {
	if s.space(); s.at < len(s.text) && s.text[s.at] == b {
		s.at++
		return true
	}
	return false
}

// takeText skips white space and a value, if the text of the value is next. It reports whether
// it was.
func (s *scanner) takeText(value []byte) bool {
	s.space()
	if len(value) == 0 || !bytes.HasPrefix(s.text[s.at:], value) {
		return false
	}
	if end := s.at + len(value); end == len(s.text) || delimits(s.text[end]) {
		s.at = end
		return true
	}
	return false
}

// delimits reports whether a byte can follow a value.
func delimits(b byte) bool {
	switch b {
	case ',', ':', ']', '}', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

// value returns the next value, nil if there is no value.
func (s *scanner) value() json.RawMessage {
	s.space()
	begin, depth := s.at, 0
	for s.at < len(s.text) {
		b := s.text[s.at]
		switch b {
		case '"':
			if s.at++; !s.endString() {
				return nil
			}
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			if depth--; depth < 0 {
				return nil
			}
			s.at++
		default:
			if depth == 0 {
				for s.at < len(s.text) && !delimits(s.text[s.at]) {
					s.at++
				}
				if s.at == begin {
					return nil
				}
			} else {
				s.at++
			}
		}
		if depth == 0 {
			return s.text[begin:s.at:s.at]
		}
	}
	return nil
}

// endString skips the rest of a string.
func (s *scanner) endString() bool {
	for {
		quote := bytes.IndexByte(s.text[s.at:], '"')
		if quote < 0 {
			return false
		}
		end := s.at + quote
		escapes := 0
		for end-escapes > s.at && s.text[end-escapes-1] == '\\' {
			escapes++
		}
		if s.at = end + 1; escapes%2 == 0 {
			return true
		}
	}
}

// members calls visit with each member's name. The scanner is then before the member's value,
// which visit takes.
func (s *scanner) members(visit func(name string) error) error {
	return s.parts('{', '}', func() error {
		name := s.value()
		if len(name) == 0 || name[0] != '"' || !s.take(':') {
			return errText
		}
		unquoted, err := unquote(name)
		if err != nil {
			return err
		}
		return visit(unquoted)
	})
}

// parts calls visit before each part of an object or a list.
func (s *scanner) parts(begin, end byte, visit func() error) error {
	if !s.take(begin) {
		return errText
	}
	for first := true; ; first = false {
		switch {
		case s.take(end):
			return nil
		case !first && !s.take(','):
			return errText
		}
		if err := visit(); err != nil {
			return err
		}
	}
}

// done reports an error unless the whole text was read.
func (s *scanner) done() error {
	if s.space(); s.at < len(s.text) {
		return errText
	}
	return nil
}

// unquote reads a string.
func unquote(quoted json.RawMessage) (string, error) {
	inner := quoted[1 : len(quoted)-1]
	for _, b := range inner {
		if b < ' ' || b > '~' || b == '\\' {
			var s string
			err := json.Unmarshal(quoted, &s)
			return s, err
		}
	}
	return string(inner), nil
}

// canonical returns a value in its stored form: json.Marshal checks it, removes white space
// and escapes some characters. So the bytes of stored values equal the bytes of new values.
func canonical(value json.RawMessage) (json.RawMessage, error) {
	if value == nil {
		return nil, errText
	}
	return json.Marshal(value)
}

// OrNull returns the value, or null if there is no value.
func OrNull(value json.RawMessage) json.RawMessage {
	if len(value) == 0 {
		return json.RawMessage("null")
	}
	return value
}

// OrEmpty returns the object, or an empty object if there is no object.
func OrEmpty(object json.RawMessage) json.RawMessage {
	if len(object) == 0 {
		return json.RawMessage("{}")
	}
	return object
}

// Present returns nil for JSON that is absent or null.
func Present(value json.RawMessage) json.RawMessage {
	if len(value) == 0 || string(value) == "null" {
		return nil
	}
	return value
}

// Member is a name and its value in a JSON object.
type Member struct {
	Name  string
	Value json.RawMessage
}

// eachMember calls visit with the members of a JSON object in their order. It does not check the
// contents of the values, so it takes little time even if they are large.
func eachMember(object []byte, visit func(Member)) error {
	s := scanner{text: object}
	err := s.members(func(name string) error {
		value := s.value()
		if value == nil {
			return errText
		}
		visit(Member{name, value})
		return nil
	})
	if err == nil {
		err = s.done()
	}
	return err
}

// Members returns the members of a JSON object in their order. It does not check the values.
func Members(object json.RawMessage) (all []Member, err error) {
	if err := eachMember(object, func(m Member) { all = append(all, m) }); err != nil {
		return nil, fmt.Errorf("%.40s is not an object: %w", object, err)
	}
	return all, nil
}

// AppendMember appends a member to an object that has begun with '{' and has not ended.
func AppendMember(object []byte, m Member) []byte {
	if len(object) > 1 {
		object = append(object, ',')
	}
	return append(append(appendString(object, m.Name), ':'), m.Value...)
}

// Cut removes members from an object. It returns their values, nil for members that the object
// does not have, and the object without them. It does not check the values.
func Cut(object []byte, names ...string) (values []json.RawMessage, rest []byte, err error) {
	values, rest = make([]json.RawMessage, len(names)), append(make([]byte, 0, 512), '{')
	err = eachMember(object, func(m Member) {
		if i := slices.Index(names, m.Name); i >= 0 {
			values[i] = m.Value
			return
		}
		rest = AppendMember(rest, m)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("look for %s: %w", strings.Join(names, ", "), err)
	}
	return values, append(rest, '}'), nil
}
