package sqlite

import (
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// headSQL reads everything that conditions and updates can use: all columns except the body.
const headSQL = `SELECT ` + headColumns + ` FROM items WHERE pk = ?1 AND sk = ?2`

// Parameters of writing statements: 1 and 2 the key, 3 attributes, 4 body, 5 when it expires,
// 6 to 9 the index keys, 10 the number of a large body.
const (
	storedColumns = `(pk, sk, attrs, body, expires, list_pk, list_sk, due_pk, due_sk, body_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)`
	insertSQL     = `INSERT INTO items ` + storedColumns + ` ON CONFLICT DO NOTHING`
	overwriteSQL  = `UPDATE OR FAIL items SET expires = ?5, attrs = ?3, body = ?4, body_id = ?10, ` + movedColumns
	deleteSQL     = `DELETE FROM items WHERE pk = ?1 AND sk = ?2`
	insertBodySQL = `INSERT INTO bodies (body) VALUES (?1)`
	deleteBodySQL = `DELETE FROM bodies WHERE id = ?1`
)

// updateSQL names only the columns that change, because SQLite leaves alone the indexes on
// columns that are not named. FAIL, here and in overwriteSQL, because an error rolls back the
// whole group anyway: to be able to roll back the statement alone, SQLite would keep a copy of
// each page, which is a sixth of the writer's work. INSERT OR REPLACE would keep the copies, too.
var updateSQL = map[updateShape]string{
	{body: false, moved: false}: `UPDATE OR FAIL items SET attrs = ?3 WHERE pk = ?1 AND sk = ?2`,
	{body: true, moved: false}:  `UPDATE OR FAIL items SET attrs = ?3, body = ?4, body_id = ?10 WHERE pk = ?1 AND sk = ?2`,
	{body: false, moved: true}:  `UPDATE OR FAIL items SET attrs = ?3, ` + movedColumns,
	{body: true, moved: true}:   `UPDATE OR FAIL items SET attrs = ?3, body = ?4, body_id = ?10, ` + movedColumns,
}

const movedColumns = `list_pk = ?6, list_sk = ?7, due_pk = ?8, due_sk = ?9 WHERE pk = ?1 AND sk = ?2`

type updateShape struct{ body, moved bool }

const (
	paramAttrs   = 3
	paramBody    = 4
	paramExpires = 5
	paramIndex   = 6
	paramBodyID  = 10
)

// store stores the row of a Put by the first of the statements that can, insertSQL if there is no
// row under the key and overwriteSQL if there is one. It reports whether one of them could.
func (w *writer) store(wr *write, statements ...string) (stored bool, err error) {
	id, err := w.storeBody(wr)
	if err != nil {
		return false, err
	}
	for _, sql := range statements {
		stmt, err := w.bindKey(sql, wr.key)
		if err != nil {
			return false, fmt.Errorf("put item: %w", err)
		}
		stmt.BindBytes(paramAttrs, wr.row.attrs)
		bindBody(stmt, wr.row.body, id)
		if wr.row.expires != 0 {
			stmt.BindInt64(paramExpires, wr.row.expires)
		}
		bindIndex(stmt, wr.row.index)
		if _, err := stmt.Step(); err != nil {
			return false, fmt.Errorf("put item: %w", err)
		}
		if w.conn.Changes() == 1 {
			return true, nil
		}
	}
	return false, w.undoBody(wr, id)
}

// update stores the changes that an Update makes to a row.
func (w *writer) update(wr *write) error {
	shape := updateShape{body: wr.row.body != nil, moved: wr.moved}
	id, err := w.storeBody(wr)
	if err != nil {
		return err
	}
	stmt, err := w.bindKey(updateSQL[shape], wr.key)
	if err != nil {
		return fmt.Errorf("update item: %w", err)
	}
	stmt.BindBytes(paramAttrs, wr.row.attrs)
	if shape.body {
		bindBody(stmt, wr.row.body, id)
	}
	if shape.moved {
		bindIndex(stmt, wr.row.index)
	}
	if _, err := stmt.Step(); err != nil {
		return fmt.Errorf("update item: %w", err)
	}
	return nil
}

// storeBody keeps a body that is too large for a row, and returns its number. It returns 0 for
// a body that is not too large. The row that is to name the body must follow.
func (w *writer) storeBody(wr *write) (id int64, err error) {
	if wr.staged != nil {
		return wr.staged.id, w.keepStaged(*wr.staged)
	}
	body := wr.row.body
	if len(body) <= maxInline {
		return 0, nil
	}
	if err := w.insertBytes(insertBodySQL, body); err != nil {
		return 0, fmt.Errorf("put body: %w", err)
	}
	return w.conn.LastInsertRowID(), nil
}

// undoBody undoes storeBody.
func (w *writer) undoBody(wr *write, id int64) error {
	if wr.staged != nil {
		_, err := w.change(stageAgainSQL, id, wr.staged.since)
		return err
	}
	if id == 0 {
		return nil
	}
	if _, err := w.change(deleteBodySQL, id); err != nil {
		return fmt.Errorf("delete body: %w", err)
	}
	return nil
}

// bindBody binds a body, or the number of a body that is kept elsewhere.
func bindBody(stmt *sqlite.Stmt, body []byte, id int64) {
	switch {
	case id != 0:
		stmt.BindInt64(paramBodyID, id)
	case len(body) > 0:
		stmt.BindBytes(paramBody, body)
	}
}

func (w *writer) delete(key table.Key) error {
	stmt, err := w.bindKey(deleteSQL, key)
	if err == nil {
		_, err = stmt.Step()
	}
	if err != nil {
		return fmt.Errorf("delete item: %w", err)
	}
	return nil
}

// change runs a statement whose parameters are numbers, and returns how many rows it has changed.
func (w *writer) change(sql string, parameters ...int64) (int, error) {
	stmt, err := w.conn.Prepare(sql)
	if err != nil {
		return 0, err
	}
	for i, parameter := range parameters {
		stmt.BindInt64(i+1, parameter)
	}
	if _, err := stmt.Step(); err != nil {
		return 0, err
	}
	return w.conn.Changes(), nil
}

// insertBytes runs a statement whose last parameter is bytes, after numbers.
func (w *writer) insertBytes(sql string, last []byte, numbers ...int64) error {
	stmt, err := w.conn.Prepare(sql)
	if err != nil {
		return err
	}
	for i, number := range numbers {
		stmt.BindInt64(i+1, number)
	}
	stmt.BindBytes(len(numbers)+1, last)
	if _, err := stmt.Step(); err != nil {
		return err
	}
	return stmt.ClearBindings() // otherwise the binding would keep a copy of the bytes
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

// bindIndex leaves the columns NULL for an index that the item is not in. This keeps the item
// out of the partial index.
func bindIndex(stmt *sqlite.Stmt, keys indexKeys) {
	for i, key := range keys {
		if key.PK == "" {
			continue
		}
		stmt.BindText(paramIndex+2*i, key.PK)
		stmt.BindText(paramIndex+2*i+1, key.SK)
	}
}
