package apikey

import (
	"context"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/table"
)

const (
	// recallLimit is how long what was read of a key counts. A key that another process revokes is good for so much longer, at most; what this process writes to
	// a key is known at once.
	recallLimit = 100 * time.Millisecond
	// recalled is how many keys a process remembers.
	recalled = 1000
)

// recall remembers the keys that requests were sent with lately, by their MACs, as most requests are sent with few of them. Only good keys are remembered, and
// nothing that is secret.
type recall struct {
	mu    sync.Mutex
	known map[string]recollection
}

// recollection is what was read of a key.
type recollection struct {
	use

	expires time.Time
	// read is when the reading began, changes are those of the key since just before.
	read    time.Time
	changes table.Watcher
}

// find returns what is known of the key with a MAC, unless it was changed or is too old.
func (r *recall) find(mac string, now time.Time) (recollection, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.known[mac]
	if !ok {
		return recollection{}, false
	}
	changed := false
	select {
	case <-known.changes.C():
		changed = true
	default:
	}
	if age := now.Sub(known.read); changed || age < 0 || age >= recallLimit {
		r.forget(mac)
		return recollection{}, false
	}
	return known, true
}

// keep remembers a key by the MAC that it is looked up by first.
func (r *recall) keep(mac string, read recollection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(mac)
	if len(r.known) >= recalled {
		for other := range r.known { // rare, and only costs to read keys again
			r.forget(other)
		}
	}
	r.known[mac] = read
}

func (r *recall) forget(mac string) {
	if known, ok := r.known[mac]; ok {
		known.changes.Stop()
		delete(r.known, mac)
	}
}

// outlast waits until no other process remembers what was just revoked. One that remembers keys itself is the only one that does, and knows.
func (s *Store) outlast(ctx context.Context) {
	if s.recall == nil {
		clock.Sleep(context.WithoutCancel(ctx), recallLimit)
	}
}
