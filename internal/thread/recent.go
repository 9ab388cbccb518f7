package thread

import (
	"container/list"
	"hash/maphash"
	"sync"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/table"
)

// recentBytes bounds what the states hold that a store remembers, stateBytes is what is reckoned for one however small.
const (
	recentBytes = 16 << 20
	stateBytes  = 4 << 10
)

// recent remembers the newest states that were read or written, one of each thread, so that a step of a long thread does not cost a reading of its whole log. What is
// remembered is not taken on trust: a state counts only as that of a checkpoint whose stored item still is the very one that it was made of. What is before a checkpoint
// that stands in the log does not change.
type recent struct {
	mu   sync.Mutex
	of   map[Ref]*list.Element
	used list.List // of *remembered, that used last first
	size int
}

// remembered is a state that nobody changes, with its checkpoint's key.
type remembered struct {
	ref   Ref
	key   table.Key
	state *State
	size  int
}

// sums makes sums of stored items, that no two items share but by a chance that nobody can help along.
var sums = maphash.MakeSeed()

// keep remembers a state of a thread, unless a newer one is.
func (r *recent) keep(ref Ref, key table.Key, s *State) {
	size := stateBytes + 2*s.Values.Size() // a snapshot is held as its parts and as a whole
	if s.At.Number < 0 || s.Forks() || size > recentBytes {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.of[ref]; e != nil {
		if old := e.Value.(*remembered).state; old.At.Number > s.At.Number || (old.At.Number == s.At.Number && old.sum == s.sum) {
			return
		}
		r.drop(e)
	}
	if r.of == nil {
		r.of = map[Ref]*list.Element{}
	}
	r.of[ref] = r.used.PushFront(&remembered{ref, key, s.clone(), size})
	for r.size += size; r.size > recentBytes; {
		r.drop(r.used.Back())
	}
}

func (r *recent) drop(e *list.Element) {
	old := r.used.Remove(e).(*remembered)
	delete(r.of, old.ref)
	r.size -= old.size
}

// find returns the state that is remembered at one of a thread's checkpoints, which are given newest first, and those that follow it; nil if there is none.
func (r *recent) find(ref Ref, items []*table.Item) (*State, []*table.Item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.of[ref]
	if e == nil {
		return nil, nil
	}
	found := e.Value.(*remembered)
	for i, item := range items {
		if item.Key != found.key {
			continue
		}
		if item.Text(record.Created) == clock.Format(found.state.At.Created) && maphash.Bytes(sums, item.Body) == found.state.sum {
			r.used.MoveToFront(e)
			return found.state.clone(), items[:i]
		}
		r.drop(e) // it was rolled back, or is another one by now
		break
	}
	return nil, nil
}

// clone returns an independent copy.
func (s *State) clone() *State {
	copied := *s
	copied.Values = s.Values.Clone()
	return &copied
}

// Remember notes that a state was stored, so that who reads it next in this process need not read it all.
func (s *Store) Remember(ref Ref, st *State) { s.recent.keep(ref, keyOf(ref, st.At.Number), st) }
