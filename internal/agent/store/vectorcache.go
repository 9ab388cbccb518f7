package store

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/lru"
	"github.com/slipway-run/slipway/internal/base/turn"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Held says how much memory the vectors of large namespaces may take that a store holds.
// It has room for the 100,000 items of a namespace with 384 dimensions.
const Held = 256 << 20

// fewest is how many items a namespace has whose vectors are held. A search of fewer items
// takes milliseconds without that.
const fewest = 1000

// growth is the part (1/growth) by which a unit may grow before it is dropped.
const growth = 4

// vectorCache keeps the vectors of the namespaces that were searched last. A search of items of 384
// dimensions then takes 2.6 ms of processor time in place of 93 ms for 10,000 items, and 29 ms
// in place of 2.6 s for 100,000 items, on all processors at once
// (BenchmarkSearchBySimilarity). A search with a filter also reads the items.
//
// Held vectors are never stale: they are changed with each write of an item, in the order of the
// writes of the item. That is why only a process that alone writes the table may hold vectors.
// A write of unknown outcome drops what it may have changed.
type vectorCache struct {
	units *lru.Cache[namespaceRange, *unit]
	room  int
	// one is locked while a unit is made: each takes up to the whole room.
	one sync.Mutex
	mu  sync.Mutex
	// turns let the writers of one item write one after the other, and no others: a commit takes as
	// long as the handlers of the item's own deployment that encrypt it.
	turns *turn.Turns[table.Key]
	// making is the unit that is made, with the changes since its making began, whose rows take
	// sinceSize bytes. spoiled says that the unit is of no use, and that no changes are noted.
	making    *unit
	since     []change
	sinceSize int
	spoiled   bool
}

// namespaceRange is a namespace with all namespaces below it: the partition, and the beginning of
// the sort keys.
type namespaceRange struct{ pk, prefix string }

// change is a change of an item.
type change struct {
	key table.Key
	// row is the new row of the item, nil if the item was removed. Its vectors are read only if
	// a unit has the item; until then vectors has their data.
	row     *row
	vectors []byte
	// renewed says that nothing has changed but when the item ceases to exist, and not even
	// that if row is nil.
	renewed bool
}

func newVectorCache(room int) *vectorCache {
	return &vectorCache{units: lru.New[namespaceRange, *unit](room), room: room, turns: turn.New[table.Key](1)}
}

// write calls commit, which writes the item at a key and returns what it has changed. A nil
// vectorCache only calls commit.
func (v *vectorCache) write(ctx context.Context, key table.Key, commit func() (change, error)) error {
	if v == nil {
		_, err := commit()
		return err
	}
	end, _, err := v.turns.Take(ctx, key)
	if err != nil {
		return context.Cause(ctx)
	}
	defer end()
	committed, err := commit()
	committed.key = key
	for _, u := range v.addChange(&committed, err) {
		if !u.apply(committed) {
			v.units.Drop(u.namespaceRange)
		}
	}
	return err
}

// addChange remembers a change for the unit that is being made, and returns the other units with
// the item.
func (v *vectorCache) addChange(c *change, failed error) (units []*unit) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.making != nil && v.making.has(c.key) {
		v.remember(c, failed)
	}
	for _, at := range namespacesOf(c.key) {
		if u, ok := v.units.Peek(at); ok && failed == nil {
			c.read()
			units = append(units, u)
		} else if ok {
			v.units.Drop(at)
		}
	}
	return units
}

// remember notes a change of an item of the unit that is being made. The unit is given up if
// the changes take too much memory: it is made again by a later search.
func (v *vectorCache) remember(c *change, failed error) {
	if c.read(); c.row != nil {
		v.sinceSize += c.row.size()
	} else {
		v.sinceSize += overheadOf + len(c.key.SK)
	}
	if failed != nil || v.sinceSize > v.room/growth {
		v.spoiled = true
	}
	if v.since = append(v.since, *c); v.spoiled {
		v.since = nil
	}
}

// read completes the row of a change.
func (c *change) read() {
	if c.row == nil {
		return
	}
	if c.row.key = c.key; len(c.vectors) > 0 {
		c.row.vectors = floats(c.vectors)
	}
	c.vectors = nil
}

// namespacesOf returns the namespace of an item, and the namespaces above it.
func namespacesOf(key table.Key) (namespaces []namespaceRange) {
	path, _, _ := strings.Cut(key.SK[2:], "#")
	for i, c := range path {
		if c == '/' {
			namespaces = append(namespaces, namespaceRange{key.PK, key.SK[:2+i+1]})
		}
	}
	return namespaces
}

// get returns the unit of a query, nil if the unit is not held. A nil vectorCache has no units.
func (v *vectorCache) get(query table.Query, near Vectors) *unit {
	if v == nil || len(near.data) == 0 {
		return nil
	}
	u, ok := v.units.Get(namespaceRange{query.PK, query.Prefix})
	if !ok || u.space != near.space {
		return nil
	}
	return u
}

// begin begins to make the unit of a query. It returns nil if another unit is being made, or
// nothing is held.
func (v *vectorCache) begin(query table.Query, near Vectors) *unit {
	if v == nil || len(near.data) == 0 || !v.one.TryLock() {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	most := v.room - v.room/(growth+1) // with its part to grow, it fills the room
	v.making = &unit{namespaceRange: namespaceRange{query.PK, query.Prefix}, space: near.space, at: map[string]int{}, counted: most}
	v.since, v.sinceSize, v.spoiled = nil, 0, false
	return v.making
}

// end keeps the unit that was made, if it is complete and of use.
func (v *vectorCache) end(u *unit, complete bool) {
	if u == nil {
		return
	}
	v.mu.Lock()
	defer v.one.Unlock()
	defer v.mu.Unlock()
	for _, c := range v.since {
		u.apply(c)
	}
	if complete && !v.spoiled && !u.dropped && len(u.rows) >= fewest {
		u.counted = u.size + u.size/growth
		v.units.Put(u.namespaceRange, u, u.counted)
	}
	v.making, v.since = nil, nil
}

// erased drops the units of a partition.
func (v *vectorCache) erased(pk string) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.units.DropIf(func(at namespaceRange) bool { return at.pk == pk })
	if v.making != nil && v.making.pk == pk {
		v.spoiled, v.since = true, nil
	}
}

// row is an item of a unit.
type row struct {
	key table.Key
	// space is the space of the vectors.
	space string
	// updated is when the item was put, expires when it ceases to exist.
	updated, expires time.Time
	// vectors has the item's vectors one after the other, nil without vectors. In a unit they
	// are of the unit's space.
	vectors []float32
}

// overheadOf is about how many bytes a row takes without its key and its vectors.
const overheadOf = 200

func (r *row) size() int { return overheadOf + len(r.key.SK) + len(r.vectors)*widthOf }

func (r *row) isGone(now time.Time) bool { return !r.expires.IsZero() && !now.Before(r.expires) }

// unit are the items below a namespace.
type unit struct {
	namespaceRange
	space string
	mu    sync.RWMutex
	rows  []row
	at    map[string]int // by sort key
	// size is about how many bytes the rows take. counted is how many they may take: while the
	// unit is made, a part of the room; later what is counted for the unit.
	size, counted int
	// dropped says that the rows took too much memory and are no longer there.
	dropped bool
}

func (u *unit) has(key table.Key) bool {
	return key.PK == u.pk && strings.HasPrefix(key.SK, u.prefix)
}

// apply makes a change. It returns false if the unit takes more memory than is counted.
func (u *unit) apply(c change) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	i, known := u.at[c.key.SK]
	switch {
	case c.renewed:
		if known && c.row != nil {
			u.rows[i].expires = c.row.expires
		}
	case c.row != nil:
		u.put(*c.row)
	case known:
		last := len(u.rows) - 1
		u.size -= u.rows[i].size()
		delete(u.at, c.key.SK)
		if i != last {
			u.rows[i] = u.rows[last]
			u.at[u.rows[i].key.SK] = i
		}
		u.rows[last] = row{}
		u.rows = u.rows[:last]
	}
	return u.size <= u.counted
}

// add adds a row of a unit that is being made, until the unit is too large.
func (u *unit) add(r row) {
	if u.dropped {
		return
	}
	if u.put(r); u.size > u.counted {
		u.drop()
	}
}

// drop gives up the rows of a unit that is being made.
func (u *unit) drop() { u.dropped, u.rows, u.at, u.size = true, nil, map[string]int{}, 0 }

// put adds a row, or replaces the row of the item.
func (u *unit) put(r row) {
	if r.space != u.space {
		r.vectors = nil
	}
	r.space = u.space
	if i, known := u.at[r.key.SK]; known {
		u.size += r.size() - u.rows[i].size()
		u.rows[i] = r
		return
	}
	u.size += r.size()
	u.at[r.key.SK] = len(u.rows)
	u.rows = append(u.rows, r)
}
