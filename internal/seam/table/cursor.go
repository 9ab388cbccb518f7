package table

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/fnv"
)

// errCursor is returned for every refused cursor: torn, altered, or made for another query.
var errCursor = errors.New("cursor was not made by this query")

// Position is where a page ended: the last item's key, and its sort key in the index that was
// read (its own sort key when no index was read). A position names no count of items. So an
// insertion or a deletion before it does not move the next page.
type Position struct {
	Sort string
	Key  Key
}

// CursorAfter makes the cursor that continues the query after a position. Adapters use it and
// Position so that a cursor means the same in each adapter. The cursor is bound to all fields of
// the query except Limit and Bytes.
func (q Query) CursorAfter(position Position) string {
	text := appendTexts(nil, position.Sort, position.Key.PK, position.Key.SK)
	sum := binary.BigEndian.AppendUint64(nil, q.cursorSum(text))
	return base64.RawURLEncoding.EncodeToString(append(sum, text...))
}

// PositionOf is the position of an item in the query's order.
func (q Query) PositionOf(item *Item) Position {
	if q.Index == "" {
		return Position{Sort: item.Key.SK, Key: item.Key}
	}
	return Position{Sort: item.Index[q.Index].SK, Key: item.Key}
}

// Position reads the query's cursor. It returns nil when the query has no cursor.
func (q Query) Position() (*Position, error) {
	if q.Cursor == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil || len(raw) < 8 || binary.BigEndian.Uint64(raw) != q.cursorSum(raw[8:]) {
		return nil, errCursor
	}
	var position Position
	rest := raw[8:]
	for _, field := range []*string{&position.Sort, &position.Key.PK, &position.Key.SK} {
		size, n := binary.Uvarint(rest)
		if n <= 0 || size > uint64(len(rest)-n) {
			return nil, errCursor
		}
		*field, rest = string(rest[n:n+int(size)]), rest[n+int(size):]
	}
	return &position, nil
}

// cursorSum ties a cursor's text to the query. It finds mistakes, not forgeries. A forger
// gains nothing: a cursor only says where in the query's own partition to go on.
func (q Query) cursorSum(text []byte) uint64 {
	direction := "forward"
	if q.Reverse {
		direction = "reverse"
	}
	sum := fnv.New64a()
	sum.Write(appendTexts(nil, string(q.Index), q.PK, q.From, q.To, q.Prefix, direction))
	sum.Write(text)
	return sum.Sum64()
}

func appendTexts(to []byte, texts ...string) []byte {
	for _, text := range texts {
		to = binary.AppendUvarint(to, uint64(len(text)))
		to = append(to, text...)
	}
	return to
}
