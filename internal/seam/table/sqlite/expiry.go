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

// erase erases a batch of expired items, and the bodies that processes that have ended left
// behind. It returns how many items it has erased.
func (w *writer) erase(now int64) (int, error) {
	erased, err := w.change(eraseSQL, now, eraseBatch)
	if err != nil {
		return 0, err
	}
	_, err = w.change(eraseStagedSQL, time.Unix(now, 0).Add(-stagedFor).UnixNano())
	return erased, err
}
