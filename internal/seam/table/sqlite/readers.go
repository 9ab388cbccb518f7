package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"zombiezen.com/go/sqlite"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// readers is the set of reading connections. They are opened when first needed, and the
// connection that was used last is used next, so that a quiet server has one connection.
type readers struct {
	path  string
	turns *turns
	count int

	mu   sync.Mutex
	idle []*reader
	shut bool
}

// reader is one connection with the buffer it decodes attributes from.
type reader struct {
	conn    *sqlite.Conn
	scratch []byte
}

func newReaders(path string) *readers {
	count := 2 * runtime.GOMAXPROCS(0)
	return &readers{path: path, turns: newTurns(count), count: count}
}

// acquire waits for a connection to read a partition. The caller must hand it back with give.
func (r *readers) acquire(ctx context.Context, partition string) (*reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := r.turns.acquire(ctx, partition); err != nil {
		return nil, err
	}
	rd, err := r.next()
	if err != nil {
		r.turns.give()
		return nil, err
	}
	return rd, nil
}

func (r *readers) next() (*reader, error) {
	r.mu.Lock()
	if r.shut {
		r.mu.Unlock()
		return nil, ErrClosed
	}
	if last := len(r.idle) - 1; last >= 0 {
		rd := r.idle[last]
		r.idle = r.idle[:last]
		r.mu.Unlock()
		return rd, nil
	}
	r.mu.Unlock()
	conn, err := openReader(r.path)
	if err != nil {
		return nil, err
	}
	return &reader{conn: conn}, nil
}

func (r *readers) give(rd *reader) {
	r.mu.Lock()
	r.idle = append(r.idle, rd)
	r.mu.Unlock()
	r.turns.give()
}

// close waits for the connections in use and closes all connections.
func (r *readers) close() error {
	r.mu.Lock()
	r.shut = true
	r.mu.Unlock()
	var errs []error
	for range r.count {
		errs = append(errs, r.turns.acquire(context.Background(), ""))
	}
	for _, rd := range r.idle {
		errs = append(errs, rd.conn.Close())
	}
	for range r.count {
		r.turns.give()
	}
	return errors.Join(errs...)
}

const getSQL = `SELECT ` + rowColumns + ` FROM items WHERE pk = ?1 AND sk = ?2`

// Get returns the item under the key, or table.ErrNotFound.
func (t *Table) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	if err := table.ValidateKey(key); err != nil {
		return nil, fmt.Errorf("get item: %w", err)
	}
	rd, err := t.readers.acquire(ctx, key.PK)
	if err != nil {
		return nil, fmt.Errorf("get item: %w", err)
	}
	defer t.readers.give(rd)
	item, err := rd.get(key, t.now().Unix())
	if err != nil {
		return nil, fmt.Errorf("get item: %w", err)
	}
	if item == nil {
		return nil, table.ErrNotFound
	}
	return item, nil
}

// GetBatch returns the items as they all were at one moment.
func (t *Table) GetBatch(ctx context.Context, keys ...table.Key) ([]*table.Item, error) {
	if err := table.ValidateKeys(keys); err != nil {
		return nil, fmt.Errorf("get items: %w", err)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	rd, err := t.readers.acquire(ctx, keys[0].PK)
	if err != nil {
		return nil, fmt.Errorf("get items: %w", err)
	}
	defer t.readers.give(rd)
	items, err := rd.getBatch(keys, t.now().Unix())
	if err != nil {
		return nil, fmt.Errorf("get items: %w", err)
	}
	return items, nil
}

func (r *reader) getBatch(keys []table.Key, now int64) (items []*table.Item, err error) {
	if err := exec(r.conn, `BEGIN`); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, exec(r.conn, commitSQL)) }()
	items = make([]*table.Item, len(keys))
	for i, key := range keys {
		if items[i], err = r.get(key, now); err != nil {
			return nil, err
		}
	}
	return items, nil
}

func (r *reader) get(key table.Key, now int64) (*table.Item, error) {
	return getItem(r.conn, getSQL, key, now, &r.scratch)
}

// getItem runs a statement that selects one row by key. It returns nil when the item is absent
// or has expired.
func getItem(conn *sqlite.Conn, sql string, key table.Key, now int64, scratch *[]byte) (*table.Item, error) {
	stmt, err := conn.Prepare(sql)
	if err != nil {
		return nil, err
	}
	stmt.BindText(1, key.PK)
	stmt.BindText(2, key.SK)
	found, err := stmt.Step()
	if err != nil {
		return nil, err
	}
	var item *table.Item
	if found && !expired(stmt, now) {
		item, err = readKnown(conn, stmt, key, scratch)
	}
	// A statement that is not reset would continue to read from the present state.
	return item, errors.Join(err, stmt.Reset())
}

// exec runs a statement without parameters and rows, prepared once for the connection.
func exec(conn *sqlite.Conn, sql string) error {
	stmt, err := conn.Prepare(sql)
	if err == nil {
		_, err = stmt.Step()
	}
	if err != nil {
		return fmt.Errorf("execute %q: %w", sql, err)
	}
	return nil
}
