package sqlite

import "time"

// eraseInterval is how often a quiet table looks for expired items. A busy table does so
// between groups.
const eraseInterval = 30 * time.Second

// eraseSQL is one look at the index of expiring items when there is nothing to erase.
const eraseSQL = `DELETE FROM items WHERE rowid IN (SELECT rowid FROM items WHERE expires <= ?1 LIMIT ?2)`

// eraseBatch bounds how long transactions wait for an erasure.
const eraseBatch = 256

// eraseExpired frees the space of expired items, at most once in a second of the clock,
// because items expire in whole seconds. The items that a batch leaves over are erased after
// the next group. An error is only logged: expired items are absent to every reader anyway.
func (w *writer) eraseExpired() {
	now := w.now().Unix()
	if now == w.erasedAt {
		return
	}
	erased, err := w.erase(now)
	if err != nil {
		w.log.Warn("expired items could not be erased", "error", err)
		return
	}
	if erased < eraseBatch {
		w.erasedAt = now
	}
}

func (w *writer) erase(now int64) (int, error) {
	stmt, err := w.conn.Prepare(eraseSQL)
	if err != nil {
		return 0, err
	}
	stmt.BindInt64(1, now)
	stmt.BindInt64(2, eraseBatch)
	if _, err := stmt.Step(); err != nil {
		return 0, err
	}
	erased := w.conn.Changes()
	return erased, w.eraseStaged(now)
}

// eraseStaged removes what processes that have ended have left behind.
func (w *writer) eraseStaged(now int64) error {
	stmt, err := w.conn.Prepare(eraseStagedSQL)
	if err != nil {
		return err
	}
	stmt.BindInt64(1, time.Unix(now, 0).Add(-stagedFor).UnixNano())
	_, err = stmt.Step()
	return err
}
