package sqlite

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// schemaVersion is the value of PRAGMA user_version of a file that this code can use.
const schemaVersion = firstVersion - 1 + len(schema)

// busyTimeout is how long a statement waits for another process's lock.
const busyTimeout = 10 * time.Second

// The page size is fixed when a file is made, and so is the property that the file can shrink.
// Larger pages keep items of a few KB in one piece.
const pageSize = 8192

// firstVersion is the version that a file had before the first release. No program opens files of
// earlier versions.
const firstVersion = 3

// schema holds the statements that make a file of each version from a file of the previous
// version. The first make a file of firstVersion from an empty file.
var schema = [...][]string{
	// The columns stand in the order in which they are needed, because SQLite reads a row only
	// as far as it must: the body comes last. Each secondary index ends with the primary key,
	// which orders items that share an index key. Rows are found by numbers, and their keys are
	// one more index, because a page holds ten rows, a hundred keys or a thousand numbers: a list
	// takes a quarter less processor time than with rows in the order of their keys, and a write
	// a fifth less. Large bodies are kept elsewhere, so that no search passes them, and are
	// deleted with the row that names them.
	{
		`CREATE TABLE items (
		pk      TEXT NOT NULL,
		sk      TEXT NOT NULL,
		expires INTEGER,
		list_pk TEXT,
		list_sk TEXT,
		due_pk  TEXT,
		due_sk  TEXT,
		attrs   BLOB NOT NULL,
		body    BLOB,
		body_id INTEGER
	) STRICT`,
		`CREATE TABLE bodies (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT`,
		`CREATE UNIQUE INDEX items_by_key ON items (pk, sk)`,
		`CREATE INDEX items_by_list ON items (list_pk, list_sk, pk, sk) WHERE list_pk IS NOT NULL`,
		`CREATE INDEX items_by_due ON items (due_pk, due_sk, pk, sk) WHERE due_pk IS NOT NULL`,
		`CREATE INDEX items_by_expires ON items (expires) WHERE expires IS NOT NULL`,
		`CREATE TRIGGER items_deleted AFTER DELETE ON items WHEN OLD.body_id IS NOT NULL
		BEGIN DELETE FROM bodies WHERE id = OLD.body_id; END`,
		`CREATE TRIGGER items_changed AFTER UPDATE OF body_id ON items WHEN OLD.body_id IS NOT NULL
		BEGIN DELETE FROM bodies WHERE id = OLD.body_id; END`,
	},
	// A body that is larger than a group of transactions stands in pieces, in the order of their
	// numbers, and has its size in its row. While staged is not NULL, no item has the body. Large
	// bodies of the earlier versions stay in one piece until they are written again.
	{
		`ALTER TABLE bodies ADD COLUMN size INTEGER`,
		`ALTER TABLE bodies ADD COLUMN staged INTEGER`,
		`CREATE INDEX bodies_staged ON bodies (staged) WHERE staged IS NOT NULL`,
		`CREATE TABLE pieces (id INTEGER PRIMARY KEY, body_id INTEGER NOT NULL, piece BLOB NOT NULL) STRICT`,
		`CREATE INDEX pieces_by_body ON pieces (body_id)`,
		`CREATE TRIGGER bodies_deleted AFTER DELETE ON bodies WHEN OLD.size IS NOT NULL
		BEGIN DELETE FROM pieces WHERE body_id = OLD.id; END`,
	},
}

// writerSettings: FULL makes each commit wait until the write-ahead log is on disk. The cache,
// in KiB, fills only with use. The writer's cache stays valid from group to group; the
// readers' caches do not. The log is folded into the file every thousand pages. If a large
// transaction has made the log very large, it is cut back.
var writerSettings = [...]string{
	`PRAGMA synchronous = FULL`,
	`PRAGMA cache_size = -16384`,
	`PRAGMA wal_autocheckpoint = 1000`,
	`PRAGMA journal_size_limit = 16777216`,
}

var readerSettings = [...]string{
	`PRAGMA query_only = ON`,
	// Each commit makes a reader drop its cache, so a larger cache costs more to give back
	// than it saves.
	`PRAGMA cache_size = -256`,
}

// openWriter opens the connection for writing and, in a new file, creates the schema.
func openWriter(path string, o options) (_ *sqlite.Conn, err error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, conn.Close())
		}
	}()
	conn.SetBusyTimeout(busyTimeout)
	version, err := readVersion(conn)
	if err != nil {
		return nil, err
	}
	if o.asItIs && version < schemaVersion {
		return nil, fmt.Errorf("the file has schema version %d and this program needs %d: "+
			"start the server of this version first, which rewrites the file", version, schemaVersion)
	}
	if version == 0 {
		if err := execAll(conn, `PRAGMA page_size = `+strconv.Itoa(pageSize), `PRAGMA auto_vacuum = INCREMENTAL`); err != nil {
			return nil, err
		}
	}
	if err := useWAL(conn); err != nil {
		return nil, err
	}
	if err := execAll(conn, writerSettings[:]...); err != nil {
		return nil, err
	}
	if o.unsynced {
		if err := execAll(conn, `PRAGMA synchronous = OFF`); err != nil {
			return nil, err
		}
	}
	if version < schemaVersion {
		if err := createSchema(conn, path, o); err != nil {
			return nil, err
		}
	}
	return conn, nil
}

// useWAL switches the file to a write-ahead log. SQLite does not wait for busyTimeout if another
// connection does the same to a new file at the same moment.
func useWAL(conn *sqlite.Conn) error {
	for deadline := time.Now().Add(busyTimeout); ; time.Sleep(5 * time.Millisecond) {
		err := execAll(conn, `PRAGMA journal_mode = WAL`)
		if sqlite.ErrCode(err).ToPrimary() != sqlite.ResultBusy || time.Now().After(deadline) {
			return err
		}
	}
}

// openReader opens a connection for reading a file that openWriter has prepared.
func openReader(path string) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, fmt.Errorf("open reader: %w", err)
	}
	conn.SetBusyTimeout(busyTimeout)
	if err := execAll(conn, readerSettings[:]...); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// createSchema brings a new file, or a file of an earlier version, to this version. It looks
// at the version again under the write lock, because two processes may open a file at once.
// For a file with items it writes to the log, because the operator who starts the program
// waits until they are written again.
func createSchema(conn *sqlite.Conn, path string, o options) error {
	if err := execAll(conn, beginSQL); err != nil {
		return err
	}
	version, err := readVersion(conn)
	earlier := err == nil && version > 0 && version < schemaVersion
	began := o.now()
	if earlier {
		o.log.Info("rewriting the table for this version of the program, which takes the longer the larger it is",
			"file", path, "bytes", fileSize(path), "version", version, "to", schemaVersion)
	}
	for next := max(version+1, firstVersion); err == nil && next <= schemaVersion; next++ {
		err = execAll(conn, append(slices.Clone(schema[next-firstVersion]), `PRAGMA user_version = `+strconv.Itoa(next))...)
	}
	items := 0
	if err == nil && earlier {
		items, err = readInt(conn, `SELECT COUNT(*) FROM items`)
	}
	if err != nil {
		return errors.Join(err, execAll(conn, rollbackSQL))
	}
	if err := execAll(conn, commitSQL); err != nil {
		return err
	}
	if earlier {
		o.log.Info("the table is rewritten", "file", path, "items", items, "duration", o.now().Sub(began))
	}
	return nil
}

func readVersion(conn *sqlite.Conn) (int, error) {
	version, err := readInt(conn, `PRAGMA user_version`)
	if err != nil {
		return 0, err
	}
	if version > schemaVersion {
		return 0, fmt.Errorf("the file has schema version %d and this program knows only %d: a newer version of the program made it",
			version, schemaVersion)
	}
	if version > 0 && version < firstVersion {
		return 0, fmt.Errorf("the file has schema version %d, which was never released, and this program knows %d and later", version, firstVersion)
	}
	return version, nil
}

// readInt runs a statement that is used once and returns a number.
func readInt(conn *sqlite.Conn, sql string) (number int, err error) {
	take := func(stmt *sqlite.Stmt) error {
		number = stmt.ColumnInt(0)
		return nil
	}
	if err := sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{ResultFunc: take}); err != nil {
		return 0, fmt.Errorf("execute %q: %w", sql, err)
	}
	return number, nil
}

// execAll runs statements that are used once, ignoring any rows.
func execAll(conn *sqlite.Conn, statements ...string) error {
	for _, sql := range statements {
		if err := sqlitex.ExecuteTransient(conn, sql, nil); err != nil {
			return fmt.Errorf("execute %q: %w", sql, err)
		}
	}
	return nil
}
