package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// Attributes are stored one after the other: length and bytes of the name, a byte for the
// type, the value. Lengths and integers are varints. A boolean is its type byte alone.
const (
	attrString = 's'
	attrInt    = 'i'
	attrTrue   = 't'
	attrFalse  = 'f'
)

// averageAttr is about how many bytes an attribute takes. The map that is parsed into has room
// for about as many attributes as there are.
const averageAttr = 24

var errAttrs = errors.New("stored attributes are damaged")

func appendAttrs(to []byte, attrs table.Attrs) []byte {
	for name, value := range attrs {
		to = binary.AppendUvarint(to, uint64(len(name)))
		to = append(to, name...)
		switch value := value.(type) {
		case string:
			to = append(to, attrString)
			to = binary.AppendUvarint(to, uint64(len(value)))
			to = append(to, value...)
		case int64:
			to = append(to, attrInt)
			to = binary.AppendVarint(to, value)
		case bool:
			if value {
				to = append(to, attrTrue)
			} else {
				to = append(to, attrFalse)
			}
		default:
			panic(fmt.Sprintf("sqlite: attribute of type %T was not validated", value))
		}
	}
	return to
}

// parseAttrs makes one copy of the stored bytes. Names and text values are parts of that copy.
func parseAttrs(stored []byte) (table.Attrs, error) {
	attrs := make(table.Attrs, len(stored)/averageAttr)
	rest := attrReader{bytes: stored, text: string(stored)}
	for len(rest.bytes) > 0 {
		name, ok := rest.string()
		if !ok || len(rest.bytes) == 0 {
			return nil, errAttrs
		}
		value, ok := rest.value()
		if !ok {
			return nil, errAttrs
		}
		attrs[name] = value
	}
	return attrs, nil
}

// attrReader walks through stored attributes. Both fields hold the rest that is not read yet.
type attrReader struct {
	bytes []byte
	text  string
}

func (r *attrReader) skip(n int) { r.bytes, r.text = r.bytes[n:], r.text[n:] }

func (r *attrReader) string() (string, bool) {
	size, n := binary.Uvarint(r.bytes)
	if n <= 0 || size > uint64(len(r.bytes)-n) {
		return "", false
	}
	s := r.text[n : n+int(size)]
	r.skip(n + int(size))
	return s, true
}

func (r *attrReader) value() (any, bool) {
	kind := r.bytes[0]
	r.skip(1)
	switch kind {
	case attrString:
		return r.string()
	case attrInt:
		i, n := binary.Varint(r.bytes)
		if n <= 0 {
			return nil, false
		}
		r.skip(n)
		return i, true
	case attrTrue:
		return true, true
	case attrFalse:
		return false, true
	default:
		return nil, false
	}
}
