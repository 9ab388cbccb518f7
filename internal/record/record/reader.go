package record

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Reader decodes a stored item. It keeps the first error, so that a decoder is a list of
// assignments that ends with Err. A value whose decoding failed is a zero value.
type Reader struct {
	*table.Item

	err error
}

// Read returns a reader of an item. The item must be of the kind and of a schema that this code
// knows.
func Read(item *table.Item, kind string) Reader {
	return Reader{Item: item, err: Check(item, kind)}
}

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Created returns when the item was created.
func (r *Reader) Created() time.Time { return r.parse(r.Text(Created)) }

// Updated returns when the item was last updated.
func (r *Reader) Updated() time.Time { return r.parse(r.Text(Updated)) }

// Time returns the time in an attribute. The time is zero if the attribute is absent or "".
func (r *Reader) Time(name string) time.Time {
	text := r.Text(name)
	if text == "" {
		return time.Time{}
	}
	return r.parse(text)
}

func (r *Reader) parse(text string) time.Time {
	at, err := clock.Parse(text)
	r.note(err)
	return at
}

// IntOr returns an integer attribute, and the given number if the attribute is absent.
func (r *Reader) IntOr(name string, absent int64) int64 {
	if number, ok := r.Attrs[name].(int64); ok {
		return number
	}
	return absent
}

// JSON decodes the JSON text of an attribute into v, and leaves v alone if the attribute is absent
// or "".
func (r *Reader) JSON(name string, v any) {
	if text := r.Text(name); text != "" {
		r.note(json.Unmarshal([]byte(text), v))
	}
}

// Decode decodes the item's body into v.
func (r *Reader) Decode(v any) { r.note(json.Unmarshal(r.Body, v)) }

// note keeps the first error.
func (r *Reader) note(err error) {
	if err != nil {
		r.err = cmp.Or(r.err, fmt.Errorf("decode item %v: %w", r.Key, err))
	}
}
