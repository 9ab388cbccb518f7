package sqlite

import (
	"encoding/binary"

	"zombiezen.com/go/sqlite"

	"github.com/slipway-run/slipway/internal/base/lru"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// shownBytes bounds what the rows take that are remembered: some pages of some lists. Bodies that are kept apart are not among them.
const shownBytes = 4 << 20

// shown remembers rows that queries of the list index have returned, as they are stored and as the items that were made of them. A list is read again and
// again by those who watch it, and most of its rows stay as they are: to compare one costs a tenth of making its item anew. Nothing is ever out of date, as
// every row is read, and compared whole.
type shown struct {
	rows *lru.Cache[string, shownRow] // by primary key, in the form that storedRow gives it
}

type shownRow struct {
	stored string
	item   *table.Item
}

// shownOverhead is about how often a row is held: as it is stored, as its item's texts, and what that is made of.
const shownOverhead = 4

func newShown() *shown { return &shown{lru.New[string, shownRow](shownBytes)} }

// item returns the item of the row that stmt stands on. Callers share it.
func (s *shown) item(conn *sqlite.Conn, stmt *sqlite.Stmt, scratch *[]byte) (*table.Item, error) {
	if stmt.ColumnInt64(columnBodyID) != 0 {
		return readItem(conn, stmt, scratch)
	}
	key, stored := storedRow(stmt, scratch)
	row, known := s.rows.Get(string(key))
	if known && row.stored == string(stored) {
		return row.item, nil
	}
	row, name := shownRow{stored: string(stored)}, string(key) // before the scratch is used again
	var err error
	if row.item, err = readItem(conn, stmt, scratch); err != nil {
		return nil, err
	}
	s.rows.Put(name, row, shownOverhead*len(row.stored))
	return row.item, nil
}

// storedRow returns all columns of the row that stmt stands on but for body_id, each after its length, and the part of them that is the primary key. Both are in scratch.
func storedRow(stmt *sqlite.Stmt, scratch *[]byte) (key, stored []byte) {
	row, end := (*scratch)[:0], 0
	for column := range columnBodyID {
		size := stmt.ColumnLen(column)
		row = binary.AppendUvarint(row, uint64(size))
		from := len(row)
		row = append(row, make([]byte, size)...)
		stmt.ColumnBytes(column, row[from:])
		if column == columnSK {
			end = len(row)
		}
	}
	*scratch = row
	return row[:end], row
}
