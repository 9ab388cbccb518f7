package sqlite

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipway-run/slipway/internal/base/lru"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Lag is how long a table with a memory may take to see by Get what another process wrote. One that must be sure of it, as when it has revoked something, calls Settle.
const Lag = 100 * time.Millisecond

const (
	// memoryBytes bounds what the remembered rows take, largestRemembered how much of that one may: there are small ones that every request needs.
	memoryBytes       = 32 << 20
	largestRemembered = 32 << 10
	// memoryOverhead is about what is held of a row beside its attributes and its body, its keys among that.
	memoryOverhead = 512
)

// memory remembers rows that were read by their keys, as they are stored: to find one in SQLite takes ten times as long. A row is forgotten before a group that
// writes to it is committed, and not remembered until that has ended, so that nobody reads the row of before who could have seen another part of the group. It
// is then remembered as it was written, if the write says all of it.
// What another process wrote is noticed by the writer, which is asked to look when it has not for as long as Lag.
//
// A nil memory remembers nothing.
type memory struct {
	rows *lru.Cache[table.Key, *remembered]
	// looked is when it was last known that no other process had written, in Unix nanoseconds, 0 while nothing is.
	looked atomic.Int64
	// look holds a token while the writer is to look.
	look chan struct{}

	// mu makes what is asked of rows and done to them one step. Finding a row does not need it.
	mu sync.Mutex
	// writing are the keys of the group that is being committed, with what is to be remembered when it is; nil for nothing.
	writing map[table.Key]*remembered
}

// remembered is a row as it is stored, or the place of one that is being read: whatever may change the row takes its place away.
type remembered struct {
	row

	read bool
}

func newMemory() *memory {
	return &memory{
		rows: lru.New[table.Key, *remembered](memoryBytes), look: make(chan struct{}, 1), writing: map[table.Key]*remembered{},
	}
}

// get returns a row's item if it is remembered, also one that has expired.
func (m *memory) get(key table.Key, now time.Time) (*table.Item, error) {
	if m == nil {
		return nil, nil
	}
	if age := now.UnixNano() - m.looked.Load(); age < 0 || age >= int64(Lag) {
		select {
		case m.look <- struct{}{}:
		default:
		}
		return nil, nil
	}
	row, ok := m.rows.Get(key)
	if !ok || !row.read {
		return nil, nil
	}
	return row.item(key)
}

// reserve returns the place of a row that is about to be read; nil when it is being written.
func (m *memory) reserve(key table.Key) *remembered {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, writing := m.writing[key]; writing {
		return nil
	}
	place := new(remembered)
	m.rows.Put(key, place, memoryOverhead)
	return place
}

// keep remembers a row that was read, if its place is still there. Without an item it only gives the place back.
func (m *memory) keep(key table.Key, place *remembered, item *table.Item, attrs []byte) {
	if place == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if now, ok := m.rows.Get(key); !ok || now != place {
		return
	}
	if item == nil {
		m.rows.Drop(key)
		return
	}
	m.put(key, newRemembered(row{expires: expiresAt(item.Expires), index: newIndexKeys(item.Index), attrs: attrs, body: item.Body}))
}

// newRemembered remembers a row, of which it makes a copy; it is nil for one that is too large.
func newRemembered(r row) *remembered {
	if len(r.attrs)+len(r.body) > largestRemembered {
		return nil
	}
	r.attrs, r.body = slices.Clone(r.attrs), slices.Clone(r.body)
	return &remembered{row: r, read: true}
}

func (m *memory) put(key table.Key, r *remembered) {
	if r == nil {
		m.rows.Drop(key)
		return
	}
	m.rows.Put(key, r, memoryOverhead+len(r.attrs)+len(r.body))
}

// begin forgets the rows that a group is about to change, until end. A verdict that is not nil is of a transaction that changes nothing.
func (m *memory) begin(group []*transaction, verdicts []error) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, tx := range group {
		if verdicts[i] != nil {
			continue
		}
		for w := range tx.writes {
			m.write(&tx.writes[w])
		}
	}
}

// write forgets the row of one write. One that was remembered is likely to be read again.
func (m *memory) write(wr *write) {
	before, written := m.writing[wr.key]
	if !written {
		before, _ = m.rows.Get(wr.key)
	}
	var after *remembered
	switch w := wr.Write.(type) {
	case table.Check:
		return
	case table.Put:
		if before != nil && before.read {
			after = newRemembered(wr.row)
		}
	case table.Update:
		if before != nil && before.read && w.Body != nil {
			after = newRemembered(wr.row)
		}
	}
	m.writing[wr.key] = after
	m.rows.Drop(wr.key)
}

// forget forgets all rows, those that are being read among them.
func (m *memory) forget() { m.rows.Clear() }

// drop forgets a row that turned out to be another than somebody took it for, perhaps because it was remembered.
func (m *memory) drop(key table.Key) {
	if m != nil {
		m.rows.Drop(key)
	}
}

// end says that the group is committed, or was not and never will be.
func (m *memory) end(committed bool) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, after := range m.writing {
		if committed && after != nil {
			m.put(key, after)
		}
	}
	clear(m.writing)
}

// wanted is what the writer waits on to be asked to look.
func (m *memory) wanted() <-chan struct{} {
	if m == nil {
		return nil
	}
	return m.look
}

// seen says that no other process had written by then but what is known of.
func (m *memory) seen(at time.Time) { m.looked.Store(at.UnixNano()) }

// close ends that anything is found.
func (m *memory) close() {
	if m != nil {
		m.looked.Store(0)
	}
}

// versionSQL answers with another number whenever another connection has written since it was last asked on this one. No connection of this process but the writer's writes.
const versionSQL = `PRAGMA data_version`

// unknownVersion is before the first look.
const unknownVersion = -1

// look finds out whether another process has written, and if so has the memory forget everything.
func (w *writer) look() {
	now := w.now()
	version, err := w.dataVersion()
	if err != nil {
		w.log.Warn("whether another process has written cannot be told, so every item is read", "error", err)
		return
	}
	if version != w.version {
		w.memory.forget()
		w.version = version
	}
	w.memory.seen(now)
}

func (w *writer) dataVersion() (int64, error) {
	stmt, err := w.conn.Prepare(versionSQL)
	if err != nil {
		return 0, err
	}
	_, err = stmt.Step()
	version := stmt.ColumnInt64(0)
	return version, errors.Join(err, stmt.Reset())
}
