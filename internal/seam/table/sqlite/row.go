package sqlite

import (
	"errors"
	"fmt"
	"io"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// indexes gives each secondary index its place among the columns.
var indexes = [...]table.Index{table.ByList, table.ByDue}

// indexKeys are an item's keys in the indexes, with the zero Key for an index that the item is
// not in.
type indexKeys [len(indexes)]table.Key

func newIndexKeys(of map[table.Index]table.Key) indexKeys {
	var keys indexKeys
	for i, index := range indexes {
		keys[i] = of[index]
	}
	return keys
}

// byName returns nil if there are no keys.
func (k indexKeys) byName() map[table.Index]table.Key {
	var of map[table.Index]table.Key
	for i, key := range k {
		if key.PK == "" {
			continue
		}
		if of == nil {
			of = make(map[table.Index]table.Key, len(k))
		}
		of[indexes[i]] = key
	}
	return of
}

// row is an item in the form that its columns have.
type row struct {
	expires int64 // Unix seconds, 0 for never
	index   indexKeys
	attrs   []byte
	body    []byte
}

// The columns of a row that is read. A head is a row without its body, and the index due has
// references only.
const (
	dueColumns  = `pk, sk, expires, NULL, NULL, due_pk, due_sk`
	headColumns = `pk, sk, expires, list_pk, list_sk, due_pk, due_sk, attrs`
	rowColumns  = headColumns + `, body, body_id`
	bodySQL     = `SELECT coalesce(size, length(body)), iif(length(body) < ?2, body, NULL), size IS NOT NULL FROM bodies WHERE id = ?1`
	piecesSQL   = `SELECT piece FROM pieces WHERE body_id = ?1 ORDER BY id`
)

// maxInline is how large a body in its item's row may be. A larger body is kept elsewhere.
const maxInline = 1024

// largeBody is the size in bytes from which on a body is read in pieces. SQLite would hold a second
// copy of the body otherwise. To begin a body that is read in pieces takes longer.
const largeBody = 1 << 20

const (
	columnPK = iota
	columnSK
	columnExpires
	columnIndex
	columnAttrs  = columnIndex + 2*len(indexes)
	columnBody   = columnAttrs + 1
	columnBodyID = columnBody + 1
)

// readItem makes an item from the row that stmt stands on. scratch is reused between calls.
func readItem(conn *sqlite.Conn, stmt *sqlite.Stmt, scratch *[]byte) (*table.Item, error) {
	key := table.Key{PK: stmt.ColumnText(columnPK), SK: stmt.ColumnText(columnSK)}
	return readKnown(conn, stmt, key, scratch)
}

// readKnown is readItem for a row whose key the caller knows.
func readKnown(conn *sqlite.Conn, stmt *sqlite.Stmt, key table.Key, scratch *[]byte) (*table.Item, error) {
	item := &table.Item{Key: key, Index: readIndex(stmt)}
	if expires := stmt.ColumnInt64(columnExpires); expires != 0 {
		item.Expires = time.Unix(expires, 0).UTC()
	}
	if stmt.ColumnCount() == columnAttrs {
		return item, nil
	}
	*scratch = readBytes(stmt, columnAttrs, *scratch)
	var err error
	if item.Attrs, err = parseAttrs(*scratch); err != nil {
		return nil, fmt.Errorf("read item %q: %w", item.Key, err)
	}
	if stmt.ColumnCount() > columnBody {
		if item.Body, err = readBody(conn, stmt); err != nil {
			return nil, fmt.Errorf("read body of item %q: %w", item.Key, err)
		}
	}
	return item, nil
}

// readBody returns the body of the row that stmt stands on, wherever it is kept. It returns
// nil if there is no body.
func readBody(conn *sqlite.Conn, stmt *sqlite.Stmt) (body []byte, err error) {
	if stmt.ColumnLen(columnBody) > 0 {
		return readBytes(stmt, columnBody, nil), nil
	}
	id := stmt.ColumnInt64(columnBodyID)
	if id == 0 {
		return nil, nil
	}
	if stmt, err = conn.Prepare(bodySQL); err != nil {
		return nil, err
	}
	stmt.BindInt64(1, id)
	stmt.BindInt64(2, largeBody)
	found, err := stmt.Step()
	switch {
	case err != nil:
		return nil, err
	case !found:
		err = errors.New("it is missing")
	case stmt.ColumnBool(2):
		body, err = readPieces(conn, id, stmt.ColumnInt(0))
	case stmt.ColumnInt(0) < largeBody:
		body = readBytes(stmt, 1, nil)
	default:
		body, err = readInPieces(conn, id, stmt.ColumnInt(0))
	}
	return body, errors.Join(err, stmt.Reset())
}

// readPieces reads a body that is stored in pieces.
func readPieces(conn *sqlite.Conn, id int64, size int) (body []byte, err error) {
	stmt, err := conn.Prepare(piecesSQL)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stmt.Reset()) }()
	stmt.BindInt64(1, id)
	body = make([]byte, size)
	read := 0
	for {
		more, err := stmt.Step()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		read += stmt.ColumnBytes(0, body[read:])
	}
	if read != size {
		return nil, fmt.Errorf("its pieces have %d bytes, want %d", read, size)
	}
	return body, nil
}

func readInPieces(conn *sqlite.Conn, id int64, size int) ([]byte, error) {
	stored, err := conn.OpenBlob("main", "bodies", "body", id, false)
	if err != nil {
		return nil, err
	}
	body := make([]byte, size)
	_, err = io.ReadFull(stored, body)
	return body, errors.Join(err, stored.Close())
}

func readIndex(stmt *sqlite.Stmt) map[table.Index]table.Key {
	var keys indexKeys
	for i := range indexes {
		if column := columnIndex + 2*i; stmt.ColumnLen(column) > 0 {
			keys[i] = table.Key{PK: stmt.ColumnText(column), SK: stmt.ColumnText(column + 1)}
		}
	}
	return keys.byName()
}

// readBytes copies a column into buf, which grows as needed.
func readBytes(stmt *sqlite.Stmt, column int, buf []byte) []byte {
	size := stmt.ColumnLen(column)
	if cap(buf) < size {
		buf = make([]byte, size)
	}
	buf = buf[:size]
	stmt.ColumnBytes(column, buf)
	return buf
}

// expired reports whether the row that stmt stands on has ceased to exist at now, in Unix seconds.
func expired(stmt *sqlite.Stmt, now int64) bool {
	expires := stmt.ColumnInt64(columnExpires)
	return expires != 0 && expires <= now
}

// expiresAt is the column's value for a time, in whole seconds. A time before 1970 means that
// the item has expired, not that it never expires.
func expiresAt(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(t.Unix(), 1)
}
