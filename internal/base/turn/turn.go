// Package turn bounds how many do the same kind of work at a time. The others wait for their turn,
// in the order in which they came.
package turn

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Turns are the turns of each key. They are safe for concurrent use.
type Turns[K comparable] struct {
	most int64

	mu sync.Mutex
	of map[K]*turns
}

// turns are the turns of one key, as long as they have users, who have a turn or wait for one.
type turns struct {
	free  *semaphore.Weighted
	users int
}

// New returns turns of which at most a number of one key are taken at a time.
func New[K comparable](most int) *Turns[K] {
	return &Turns[K]{most: int64(most), of: map[K]*turns{}}
}

// Take waits for a turn, which lasts until the caller calls end. waited says whether no turn was
// free at once. The error is that of ctx.
func (t *Turns[K]) Take(ctx context.Context, key K) (end func(), waited bool, err error) {
	at := t.join(key)
	if waited = !at.free.TryAcquire(1); waited {
		err = at.free.Acquire(ctx, 1)
	}
	if err != nil {
		t.release(key, at)
		return nil, waited, err
	}
	return func() {
		at.free.Release(1)
		t.release(key, at)
	}, waited, nil
}

func (t *Turns[K]) join(key K) *turns {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.of[key]
	if at == nil {
		at = &turns{free: semaphore.NewWeighted(t.most)}
		t.of[key] = at
	}
	at.users++
	return at
}

func (t *Turns[K]) release(key K, at *turns) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at.users--; at.users == 0 {
		delete(t.of, key)
	}
}
