// Package watch registers watchers of keys and wakes them.
package watch

import (
	"sync"
	"sync/atomic"
)

// Watchers is a register of the watchers of each key. They are woken and may be given
// a value. The register is safe for concurrent use.
type Watchers[K comparable, V any] struct {
	// begin, when not nil, is called when a key's first watcher comes. The function that it
	// returns is called when the last watcher has gone.
	begin func(K) (end func())
	// count is how many watchers there are. While it is 0, waking costs no lock.
	count atomic.Int64

	mu    sync.Mutex
	byKey map[K]*audience[K, V]
}

// audience are the watchers of one key.
type audience[K comparable, V any] struct {
	watchers map[*Watcher[K, V]]struct{}
	end      func()
	// value is the value with which they were last woken.
	value V
}

// New makes an empty register. begin may be nil. Neither begin nor the function that it returns
// may call the register.
func New[K comparable, V any](begin func(K) (end func())) *Watchers[K, V] {
	return &Watchers[K, V]{begin: begin, byKey: make(map[K]*audience[K, V])}
}

// Watcher waits for wake-ups of one key. Its channel holds one wake-up: a second one, before the
// reader took the first, would give the reader no more information.
type Watcher[K comparable, V any] struct {
	all *Watchers[K, V]
	key K
	c   chan struct{}
}

// Add returns a new watcher of the key.
func (all *Watchers[K, V]) Add(key K) *Watcher[K, V] {
	w := &Watcher[K, V]{all: all, key: key, c: make(chan struct{}, 1)}
	all.mu.Lock()
	defer all.mu.Unlock()
	a := all.byKey[key]
	if a == nil {
		a = &audience[K, V]{watchers: map[*Watcher[K, V]]struct{}{}, end: func() {}}
		if all.begin != nil {
			a.end = all.begin(key)
		}
		all.byKey[key] = a
	}
	a.watchers[w] = struct{}{}
	all.count.Add(1)
	return w
}

// Wake wakes the key's watchers without a value.
func (all *Watchers[K, V]) Wake(key K) {
	var none V
	all.WakeWith(key, none)
}

// WakeWith wakes the key's watchers with a value.
func (all *Watchers[K, V]) WakeWith(key K, value V) {
	if all.count.Load() == 0 {
		return
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	a := all.byKey[key]
	if a == nil {
		return
	}
	a.value = value
	for w := range a.watchers {
		select {
		case w.c <- struct{}{}:
		default:
		}
	}
}

// C delivers wake-ups.
func (w *Watcher[K, V]) C() <-chan struct{} { return w.c }

// Item returns the value with which the watchers of the key were last woken.
func (w *Watcher[K, V]) Item() (value V) {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	if a := w.all.byKey[w.key]; a != nil {
		return a.value
	}
	return value
}

// Stop ends the watch and takes back a wake-up that was not received.
func (w *Watcher[K, V]) Stop() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	a := w.all.byKey[w.key]
	if a == nil {
		return
	}
	if _, watching := a.watchers[w]; !watching {
		return
	}
	delete(a.watchers, w)
	if len(a.watchers) == 0 {
		delete(w.all.byKey, w.key)
		a.end()
	}
	w.all.count.Add(-1)
	select {
	case <-w.c:
	default:
	}
}
