package asl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Decode reads one JSON value and keeps its numbers as they are written.
func Decode(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
	}
	if err := wantEnd(decoder); err != nil {
		return nil, err
	}
	return value, nil
}

// Encode writes a value that Decode or a State made. JSON can hold each of them.
func Encode(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic("asl: encode JSON: " + err.Error())
	}
	return text
}

func wantEnd(decoder *json.Decoder) error {
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("decode JSON: there is text after the value")
	}
	return nil
}

// member is one name and value of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// members reads a JSON object in the order of its text. A name that occurs twice is an error:
// encoding/json would drop the first member.
func members(text json.RawMessage) ([]member, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.New("a JSON object is required")
	}
	var list []member
	seen := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, fmt.Errorf("decode JSON: %w", err)
		}
		name, _ := token.(string)
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, fmt.Errorf("decode JSON: %w", err)
		}
		if seen[name] {
			return nil, fmt.Errorf("%q stands twice", name)
		}
		seen[name] = true
		list = append(list, member{name, value})
	}
	if _, err := decoder.Token(); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
	}
	return list, wantEnd(decoder)
}
