package thread

import (
	"hash/maphash"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/lru"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// recentBytes bounds what the states take that a store remembers.
const recentBytes = 12 << 20

// recent remembers the newest states that were read or written, one of each thread, so that a step
// of a long thread does not cost a reading of its whole log. What is remembered is not taken on
// trust: a state counts only as that of a checkpoint whose stored item still is the very one that
// it was made of. What is before a checkpoint that stands in the log does not change.
type recent struct{ *lru.Cache[Ref, remembered] }

func newRecent() recent { return recent{lru.New[Ref, remembered](recentBytes)} }

// remembered is a state that nobody changes, with its checkpoint's key.
type remembered struct {
	key   table.Key
	state *State
}

// sums seeds the hash of stored items. The seed is random per process, so collisions cannot be
// provoked.
var sums = maphash.MakeSeed()

// keep remembers a state of a thread, unless a newer one is.
func (r recent) keep(ref Ref, key table.Key, s *State) {
	if s.At.Number < 0 || s.Forks() {
		return
	}
	if known, ok := r.Get(ref); ok {
		if old := known.state; old.At.Number > s.At.Number || (old.At.Number == s.At.Number && old.sum == s.sum) {
			return
		}
	}
	r.Put(ref, remembered{key, s.clone()}, s.Values.Memory()+s.Values.Size()) // a snapshot is held as its parts and as a whole
}

// find returns the state that is remembered at one of a thread's checkpoints, which are given
// newest first, and those that follow it; nil if there is none.
func (r recent) find(ref Ref, items []*table.Item) (*State, []*table.Item) {
	found, ok := r.Get(ref)
	if !ok {
		return nil, nil
	}
	for i, item := range items {
		if item.Key != found.key {
			continue
		}
		if item.Text(record.Created) == clock.Format(found.state.At.Created) && maphash.Bytes(sums, item.Body) == found.state.sum {
			return found.state.clone(), items[:i]
		}
		r.Drop(ref) // it was rolled back, or is another one by now
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

// Remember notes that a state was stored, so that who reads it next in this process need not read
// it all.
func (s *Store) Remember(ref Ref, st *State) { s.recent.keep(ref, keyOf(ref, st.At.Number), st) }
