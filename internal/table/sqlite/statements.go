package sqlite

import (
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/slipway-run/slipway/internal/table"
)

// headSQL reads what conditions and updates can be about: all but the body.
const headSQL = `SELECT ` + headColumns + ` FROM items WHERE pk = ?1 AND sk = ?2`

// Parameters of writing statements: 1 and 2 the key, 3 attributes, 4 body, 5 when it expires, 6 to 9 the index keys.
const (
	storedColumns = `(pk, sk, attrs, body, expires, list_pk, list_sk, due_pk, due_sk) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)`
	insertSQL     = `INSERT INTO items ` + storedColumns + ` ON CONFLICT DO NOTHING`
	replaceSQL    = `INSERT OR REPLACE INTO items ` + storedColumns
	deleteSQL     = `DELETE FROM items WHERE pk = ?1 AND sk = ?2`
)

// updateSQL names only the columns that change, as SQLite leaves alone the indexes on columns that are not named.
var updateSQL = map[updateShape]string{
	{body: false, moved: false}: `UPDATE items SET attrs = ?3 WHERE pk = ?1 AND sk = ?2`,
	{body: true, moved: false}:  `UPDATE items SET attrs = ?3, body = ?4 WHERE pk = ?1 AND sk = ?2`,
	{body: false, moved: true}:  `UPDATE items SET attrs = ?3, ` + movedColumns,
	{body: true, moved: true}:   `UPDATE items SET attrs = ?3, body = ?4, ` + movedColumns,
}

const movedColumns = `list_pk = ?6, list_sk = ?7, due_pk = ?8, due_sk = ?9 WHERE pk = ?1 AND sk = ?2`

type updateShape struct{ body, moved bool }

const (
	paramAttrs   = 3
	paramBody    = 4
	paramExpires = 5
	paramIndex   = 6
)

// store runs insertSQL or replaceSQL.
func (w *writer) store(sql string, wr *write) error {
	stmt, err := w.bindKey(sql, wr.key)
	if err != nil {
		return fmt.Errorf("put item: %w", err)
	}
	stmt.BindBytes(paramAttrs, wr.row.attrs)
	if len(wr.row.body) > 0 {
		stmt.BindBytes(paramBody, wr.row.body)
	}
	if wr.row.expires != 0 {
		stmt.BindInt64(paramExpires, wr.row.expires)
	}
	bindIndex(stmt, wr.row.index)
	if err := finish(stmt, len(wr.row.body)); err != nil {
		return fmt.Errorf("put item: %w", err)
	}
	return nil
}

// update stores what an Update changes of a row.
func (w *writer) update(wr *write) error {
	shape := updateShape{body: wr.row.body != nil, moved: wr.moved}
	stmt, err := w.bindKey(updateSQL[shape], wr.key)
	if err != nil {
		return fmt.Errorf("update item: %w", err)
	}
	stmt.BindBytes(paramAttrs, wr.row.attrs)
	if len(wr.row.body) > 0 {
		stmt.BindBytes(paramBody, wr.row.body)
	}
	if shape.moved {
		bindIndex(stmt, wr.row.index)
	}
	if err := finish(stmt, len(wr.row.body)); err != nil {
		return fmt.Errorf("update item: %w", err)
	}
	return nil
}

func (w *writer) delete(key table.Key) error {
	stmt, err := w.bindKey(deleteSQL, key)
	if err != nil {
		return fmt.Errorf("delete item: %w", err)
	}
	if err := finish(stmt, 0); err != nil {
		return fmt.Errorf("delete item: %w", err)
	}
	return nil
}

func (w *writer) bindKey(sql string, key table.Key) (*sqlite.Stmt, error) {
	stmt, err := w.conn.Prepare(sql)
	if err != nil {
		return nil, err
	}
	stmt.BindText(1, key.PK)
	stmt.BindText(2, key.SK)
	return stmt, nil
}

// bindIndex leaves the columns of an index the item is not in NULL, which keeps it out of the partial index.
func bindIndex(stmt *sqlite.Stmt, keys indexKeys) {
	for i, key := range keys {
		if key.PK == "" {
			continue
		}
		stmt.BindText(paramIndex+2*i, key.PK)
		stmt.BindText(paramIndex+2*i+1, key.SK)
	}
}

// finish runs a statement without rows and lets go of its copy of a large body.
func finish(stmt *sqlite.Stmt, body int) error {
	const large = 64 << 10
	_, err := stmt.Step()
	if err == nil && body > large {
		err = stmt.ClearBindings()
	}
	return err
}
