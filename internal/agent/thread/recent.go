package thread

import (
	"hash/maphash"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/lru"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// recentBytes bounds the memory of the states that a store remembers.
const recentBytes = 12 << 20

// recent remembers the newest state of each thread that was read or written, so that a step of a
// long thread does not read the thread's whole log. A remembered state is used only if the stored
// item of its checkpoint is unchanged. Earlier checkpoints never change while that item exists.
type recent struct{ *lru.Cache[Ref, remembered] }

func newRecent() recent { return recent{lru.New[Ref, remembered](recentBytes)} }

// remembered is a state with its checkpoint's key.
type remembered struct {
	key   table.Key
	state State
}

// sums seeds the hash of stored items. The seed is random per process, so collisions cannot be
// provoked.
var sums = maphash.MakeSeed()

// remember keeps the state, unless a newer state of the thread is remembered.
func (r recent) remember(ref Ref, s State) {
	if s.At.Number < 0 {
		return
	}
	if known, ok := r.Get(ref); ok {
		if old := known.state; old.At.Number > s.At.Number || (old.At.Number == s.At.Number && old.sum == s.sum) {
			return
		}
	}
	r.Put(ref, remembered{keyOf(ref, s.At.Number), s}, s.Values.Memory()+s.Values.Size()) // a snapshot is held as parts and as a whole
}

// find returns the remembered state of a thread at one of the given checkpoints, and the
// checkpoints that follow it. The checkpoints are given newest first. ok is false if no state at
// these checkpoints is remembered.
func (r recent) find(ref Ref, items []*table.Item) (st State, following []*table.Item, ok bool) {
	found, ok := r.Get(ref)
	if !ok {
		return Empty(), nil, false
	}
	for i, item := range items {
		if item.Key != found.key {
			continue
		}
		if item.Text(record.Created) == clock.Format(found.state.At.Created) && maphash.Bytes(sums, item.Body) == found.state.sum {
			return found.state, items[:i], true
		}
		r.Drop(ref) // the checkpoint was rolled back, or replaced by another one
		break
	}
	return Empty(), nil, false
}

// Remember notes that a log was stored, so that the next reader in this process does not read the
// whole log.
func (s *Store) Remember(l Log) {
	if !l.Forks() {
		s.recent.remember(l.ref, l.State)
	}
}
