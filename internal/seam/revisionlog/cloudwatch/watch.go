package cloudwatch

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

// shortest and longest bound the time between two wake-ups. Each wake-up of a reader is a request,
// of which an account may send a few per second. So the time doubles as long as the log is silent.
const (
	shortest = 3 * time.Second
	longest  = 24 * time.Second
)

// watcher wakes at intervals.
type watcher struct {
	logs *Logs
	log  revisionlog.Log
	c    chan struct{}

	mu      sync.Mutex
	timer   *time.Timer
	pause   time.Duration
	stopped bool
}

// Watch wakes the reader at intervals at which it is worth looking again. Read of the same Logs
// tells the watcher what it has found.
func (r *Logs) Watch(log revisionlog.Log) revisionlog.Watcher {
	w := &watcher{logs: r, log: log, c: make(chan struct{}, 1), pause: shortest}
	w.mu.Lock()
	w.timer = time.AfterFunc(w.pause, w.wake)
	w.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watching[log] = append(r.watching[log], w)
	return w
}

// notify passes to the watchers of a log what a reader has met.
func (r *Logs) notify(log revisionlog.Log, what func(*watcher)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.watching[log] {
		what(w)
	}
}

// wake wakes the reader, and again after twice the time, unless the reader finds lines.
func (w *watcher) wake() {
	select {
	case w.c <- struct{}{}:
	default:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next(min(2*w.pause, longest)) // also after a refusal, which has a longer pause
}

// found makes the next wake-up come soon: a log with new lines will probably have more.
func (w *watcher) found() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next(shortest)
}

// refused makes the next wake-up come late, for each refused reader at another time.
func (w *watcher) refused() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next(longest + rand.N(longest))
}

// next sets the time until the next wake-up. The caller holds the lock.
func (w *watcher) next(pause time.Duration) {
	if w.pause = pause; !w.stopped {
		w.timer.Reset(pause)
	}
}

// C delivers wake-ups.
func (w *watcher) C() <-chan struct{} { return w.c }

// Stop ends the watch.
func (w *watcher) Stop() {
	w.mu.Lock()
	w.stopped = true
	w.timer.Stop()
	w.mu.Unlock()
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	others := slices.DeleteFunc(w.logs.watching[w.log], func(other *watcher) bool { return other == w })
	if w.logs.watching[w.log] = others; len(others) == 0 {
		delete(w.logs.watching, w.log)
	}
}
