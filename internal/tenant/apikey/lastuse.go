package apikey

import (
	"context"
	"time"

	"github.com/slipway-run/slipway/internal/base/guard"
)

const (
	// useInterval is the shortest time between two notes of a key's use.
	useInterval = time.Minute
	// noteLimit is how long writing a note may take.
	noteLimit = 5 * time.Second
	// noters is how many notes may be under way; further notes are left to a later request.
	noters = 4
	// knownUses is the number of keys for which a process remembers that it has noted their
	// use: the keys that were used last.
	knownUses = 10_000
)

// tryNote takes a slot if the key's use must be noted.
func (s *Store) tryNote(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if last, ok := s.noted.Get(key); ok && now.Sub(last) < useInterval {
		return false
	}
	if !s.slots.TryAcquire(1) {
		return false
	}
	s.noted.Put(key, now, 1)
	return true
}

// used notes that a key was used, while the request continues. A lost note does no harm: there
// will be another note.
func (s *Store) used(ctx context.Context, u use) {
	if u.Key == "" || !s.tryNote(u.Key) {
		return
	}
	go guard.Func(nil, "note the use of a key", func() {
		defer s.slots.Release(1)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteLimit)
		defer cancel()
		_ = s.note(ctx, u)
	})()
}

// Wait waits until the notes that are under way are written, or the context ends.
func (s *Store) Wait(ctx context.Context) {
	if s.slots.Acquire(ctx, noters) == nil {
		s.slots.Release(noters)
	}
}
