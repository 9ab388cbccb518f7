package sqlite

import (
	"encoding/binary"
	"sync"

	"zombiezen.com/go/sqlite"

	"github.com/slipway-run/slipway/internal/table"
)

// mostShown is how many rows are remembered: some pages of some lists, a few megabytes at most, as bodies that are kept apart are not among them.
const mostShown = 1024

// shown remembers rows that queries of the list index have returned, as they are stored and as the items that were made of them. A list is read again and
// again by those who watch it, and most of its rows stay as they are: to compare one costs a tenth of making its item anew. Nothing is ever out of date, as
// every row is read, and compared whole.
type shown struct {
	mu   sync.RWMutex
	rows map[string]shownRow // by primary key, in the form that storedRow gives it
}

type shownRow struct {
	stored string
	item   *table.Item
}

func newShown() *shown { return &shown{rows: make(map[string]shownRow)} }

// item returns the item of the row that stmt stands on. Callers share it.
func (s *shown) item(conn *sqlite.Conn, stmt *sqlite.Stmt, scratch *[]byte) (*table.Item, error) {
	if stmt.ColumnInt64(columnBodyID) != 0 {
		return readItem(conn, stmt, scratch)
	}
	key, stored := storedRow(stmt, scratch)
	s.mu.RLock()
	row, known := s.rows[string(key)]
	s.mu.RUnlock()
	if known && row.stored == string(stored) {
		return row.item, nil
	}
	row, name := shownRow{stored: string(stored)}, string(key) // before the scratch is used again
	var err error
	if row.item, err = readItem(conn, stmt, scratch); err != nil {
		return nil, err
	}
	s.keep(name, row)
	return row.item, nil
}

func (s *shown) keep(name string, row shownRow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, replaces := s.rows[name]; !replaces && len(s.rows) >= mostShown {
		for other := range s.rows {
			delete(s.rows, other)
			break
		}
	}
	s.rows[name] = row
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
