package files

import (
	"sync"

	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

// watchers are the readers that wait for lines.
type watchers struct {
	mu sync.Mutex
	of map[revisionlog.Log]map[*watcher]struct{}
}

// watcher's channel holds one wake-up: a second one, before the reader took the first, would
// give the reader no more information.
type watcher struct {
	all *watchers
	log revisionlog.Log
	c   chan struct{}
}

// Watch wakes when a line was written to the log.
func (l *Logs) Watch(log revisionlog.Log) revisionlog.Watcher {
	w := &watcher{all: &l.watchers, log: log, c: make(chan struct{}, 1)}
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	if w.all.of[log] == nil {
		w.all.of[log] = map[*watcher]struct{}{}
	}
	w.all.of[log][w] = struct{}{}
	return w
}

func (all *watchers) wake(log revisionlog.Log) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for w := range all.of[log] {
		select {
		case w.c <- struct{}{}:
		default:
		}
	}
}

// C delivers wake-ups.
func (w *watcher) C() <-chan struct{} { return w.c }

// Stop ends the watch.
func (w *watcher) Stop() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	delete(w.all.of[w.log], w)
	if len(w.all.of[w.log]) == 0 {
		delete(w.all.of, w.log)
	}
}
