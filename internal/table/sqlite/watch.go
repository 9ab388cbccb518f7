package sqlite

import (
	"sync"
	"sync/atomic"

	"github.com/slipway-run/slipway/internal/table"
)

// watchers knows who wants to hear of which key.
type watchers struct {
	// count is how many there are: while it is 0, waking costs no lock.
	count atomic.Int64

	mu    sync.Mutex
	byKey map[table.Key]map[*watcher]struct{}
}

func newWatchers() *watchers {
	return &watchers{byKey: make(map[table.Key]map[*watcher]struct{})}
}

// watcher's channel holds one wake-up: a second one before the reader took the first would tell it nothing more.
type watcher struct {
	all *watchers
	key table.Key
	c   chan struct{}
}

func (all *watchers) add(key table.Key) *watcher {
	w := &watcher{all: all, key: key, c: make(chan struct{}, 1)}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.byKey[key] == nil {
		all.byKey[key] = make(map[*watcher]struct{})
	}
	all.byKey[key][w] = struct{}{}
	all.count.Add(1)
	return w
}

func (all *watchers) wake(key table.Key) {
	if all.count.Load() == 0 {
		return
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	for w := range all.byKey[key] {
		select {
		case w.c <- struct{}{}:
		default:
		}
	}
}

// C delivers wake-ups.
func (w *watcher) C() <-chan struct{} { return w.c }

// Stop ends the watch and takes back a wake-up that was not received.
func (w *watcher) Stop() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	if _, watching := w.all.byKey[w.key][w]; !watching {
		return
	}
	delete(w.all.byKey[w.key], w)
	if len(w.all.byKey[w.key]) == 0 {
		delete(w.all.byKey, w.key)
	}
	w.all.count.Add(-1)
	select {
	case <-w.c:
	default:
	}
}
