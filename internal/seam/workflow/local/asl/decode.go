package asl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Decode reads one JSON value and keeps its numbers as they are written.
func Decode(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decodeOne(decoder, &value); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
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

// strict reads a JSON value that has no other members than the fields of a type.
func strict(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decodeOne(decoder, into)
}

func decodeOne(decoder *json.Decoder, into any) error {
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is text after the value")
	}
	return nil
}

// checkNames refuses an object with two names that encoding/json takes for the same field: it
// would drop the first member.
func checkNames(decoder *json.Decoder) error {
	token, err := decoder.Token()
	if err != nil || token != json.Delim('{') && token != json.Delim('[') {
		return err
	}
	seen := map[string]bool{}
	for decoder.More() {
		if token == json.Delim('{') {
			name, err := decoder.Token()
			if err != nil {
				return err
			}
			field := strings.ToLower(fmt.Sprint(name))
			if seen[field] {
				return fmt.Errorf("%q stands twice", name)
			}
			seen[field] = true
		}
		if err := checkNames(decoder); err != nil {
			return err
		}
	}
	_, err = decoder.Token()
	return err
}
