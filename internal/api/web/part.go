package web

import (
	"encoding/json"
	"fmt"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// CheckPart checks a JSON value against a schema of the document's components, for handlers of
// requests whose own schema does not describe the value. loc is the place of the value in the
// request. The fault lists all problems.
func (c *Contract) CheckPart(schema string, text json.RawMessage, loc ...any) error {
	l, err := c.loader()
	if err != nil {
		return err
	}
	part, err := l.part(pointer{"components", "schemas", schema})
	if err != nil {
		return fmt.Errorf("compile schema %s: %w", schema, err)
	}
	if err := CheckReadable(text); err != nil {
		return err
	}
	s := &splitter{}
	check, _ := s.value(part.shape, text, loc)
	if s.values > mostValues {
		return fault.Shape(fault.Detail{Loc: loc, Type: "too_long", Msg: fmt.Sprintf("The value should have at most %d values", mostValues)})
	}
	return part.schema.validate(check, loc...).asError()
}

// part compiles the schema at a place of the document.
func (l *loader) part(at pointer) (part body, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if part.schema, err = l.schema(at); err != nil {
		return part, err
	}
	part.shape, err = l.shape(at, map[string]*shape{})
	return part, err
}
