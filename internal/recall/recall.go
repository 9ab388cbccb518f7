// Package recall remembers for a moment what was read of the items that most requests need, such as the key that they are sent with.
//
// It is for the one server of a table. What is written through the same table counts at once, since what is remembered is watched; what another process
// writes counts after Limit, for which a process that must be sure can wait.
package recall

import (
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/table"
)

// Limit is how long what was read counts.
const Limit = 100 * time.Millisecond

// Memory remembers a T of each item. Its methods may be called at the same time; those of a nil Memory remember nothing.
type Memory[T any] struct {
	table table.Table
	now   clock.Clock
	most  int

	mu    sync.Mutex
	known map[table.Key]recollection[T]
}

// recollection is what was read of an item.
type recollection[T any] struct {
	value T
	// read is when the reading began, changes are those of the item since just before.
	read    time.Time
	changes table.Watcher
}

// New returns a memory of so many items of a table.
func New[T any](t table.Table, now clock.Clock, most int) *Memory[T] {
	return &Memory[T]{table: t, now: now, most: most, known: map[table.Key]recollection[T]{}}
}

// Get returns what read returns of the item under the key, or returned lately. What read does not want to be kept, or fails to read, is not remembered.
func (m *Memory[T]) Get(key table.Key, read func() (value T, keep bool, err error)) (T, error) {
	if m == nil {
		value, _, err := read()
		return value, err
	}
	now := m.now()
	if value, ok := m.find(key, now); ok {
		return value, nil
	}
	// What is changed while it is read must be known, so the watch begins before.
	changes := m.table.Watch(key)
	value, keep, err := read()
	if err != nil || !keep {
		changes.Stop()
		return value, err
	}
	m.keep(key, recollection[T]{value, now, changes})
	return value, nil
}

// find returns what is known of an item, unless it was changed or is too old.
func (m *Memory[T]) find(key table.Key, now time.Time) (value T, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.known[key]
	if !ok {
		return value, false
	}
	changed := false
	select {
	case <-known.changes.C():
		changed = true
	default:
	}
	if age := now.Sub(known.read); changed || age < 0 || age >= Limit {
		m.forget(key)
		return value, false
	}
	return known.value, true
}

func (m *Memory[T]) keep(key table.Key, read recollection[T]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(key)
	if len(m.known) >= m.most {
		for other := range m.known { // rare, and only costs to read items again
			m.forget(other)
		}
	}
	m.known[key] = read
}

func (m *Memory[T]) forget(key table.Key) {
	if known, ok := m.known[key]; ok {
		known.changes.Stop()
		delete(m.known, key)
	}
}
