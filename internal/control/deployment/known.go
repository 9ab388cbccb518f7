package deployment

import "github.com/slipway-run/slipway/internal/base/lru"

// Known keeps what was made of deployments, each by the version that it was made of: it counts as long as the deployment has that version. It is safe for concurrent
// use, and what it keeps is shared by all who ask for it.
type Known[V any] struct{ made *lru.Cache[Ref, versioned[V]] }

type versioned[V any] struct {
	version int64
	value   V
}

// NewKnown returns one that keeps no more than so many values.
func NewKnown[V any](most int) *Known[V] { return &Known[V]{lru.New[Ref, versioned[V]](most)} }

// Get returns what was made of the deployment of that version, if it is kept.
func (k *Known[V]) Get(ref Ref, version int64) (value V, ok bool) {
	known, ok := k.made.Get(ref)
	if !ok || known.version != version {
		return value, false
	}
	return known.value, true
}

// Keep keeps what was made of a deployment. When there are too many, the one that was not used for longest makes room.
func (k *Known[V]) Keep(ref Ref, version int64, value V) {
	k.made.Put(ref, versioned[V]{version, value}, 1)
}
