package deployment

import "sync"

// Known keeps what was made of deployments, each by the version that it was made of: it counts as long as the deployment has that version. It is safe for concurrent
// use, and what it keeps is shared by all who ask for it.
type Known[V any] struct {
	most int

	mu   sync.RWMutex
	made map[Ref]versioned[V]
}

type versioned[V any] struct {
	version int64
	value   V
}

// NewKnown returns one that keeps no more than so many values.
func NewKnown[V any](most int) *Known[V] {
	return &Known[V]{most: most, made: map[Ref]versioned[V]{}}
}

// Get returns what was made of the deployment of that version, if it is kept.
func (k *Known[V]) Get(ref Ref, version int64) (value V, ok bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	known, ok := k.made[ref]
	if !ok || known.version != version {
		return value, false
	}
	return known.value, true
}

// Keep keeps what was made of a deployment. When there are too many, another one makes room.
func (k *Known[V]) Keep(ref Ref, version int64, value V) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, replaces := k.made[ref]; !replaces && len(k.made) >= k.most {
		for other := range k.made {
			delete(k.made, other)
			break
		}
	}
	k.made[ref] = versioned[V]{version, value}
}
