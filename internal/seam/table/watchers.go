package table

import (
	"sync"
	"sync/atomic"
)

// Watchers is an adapter's register of the watchers of each key.
type Watchers struct {
	// begin, when not nil, is called when a key's first watcher comes. The function that it
	// returns is called when the last watcher has gone.
	begin func(Key) (end func())
	// count is how many watchers there are. While it is 0, waking costs no lock.
	count atomic.Int64

	mu    sync.Mutex
	byKey map[Key]*audience
}

// audience are the watchers of one key.
type audience struct {
	watchers map[*watcher]struct{}
	end      func()
	// item is the item with which they were last woken, nil if it is not known.
	item *Item
}

// NewWatchers makes an empty register. begin may be nil. Neither begin nor the function that
// it returns may call the register.
func NewWatchers(begin func(Key) (end func())) *Watchers {
	return &Watchers{begin: begin, byKey: make(map[Key]*audience)}
}

// watcher's channel holds one wake-up: a second one, before the reader took the first, would
// give the reader no more information.
type watcher struct {
	all *Watchers
	key Key
	c   chan struct{}
}

// Add returns a new watcher of the key.
func (all *Watchers) Add(key Key) Watcher {
	w := &watcher{all: all, key: key, c: make(chan struct{}, 1)}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.byKey[key] == nil {
		all.byKey[key] = all.gather(key)
	}
	all.byKey[key].watchers[w] = struct{}{}
	all.count.Add(1)
	return w
}

func (all *Watchers) gather(key Key) *audience {
	a := &audience{watchers: make(map[*watcher]struct{}), end: func() {}}
	if all.begin != nil {
		a.end = all.begin(key)
	}
	return a
}

// Wake wakes the key's watchers.
func (all *Watchers) Wake(key Key) { all.WakeWith(key, nil) }

// WakeWith wakes the key's watchers with the item that was found.
func (all *Watchers) WakeWith(key Key, item *Item) {
	if all.count.Load() == 0 {
		return
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.byKey[key] == nil {
		return
	}
	all.byKey[key].item = item
	for w := range all.byKey[key].watchers {
		select {
		case w.c <- struct{}{}:
		default:
		}
	}
}

// C delivers wake-ups.
func (w *watcher) C() <-chan struct{} { return w.c }

// Item returns the item with which the watchers were last woken.
func (w *watcher) Item() *Item {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	if a := w.all.byKey[w.key]; a != nil {
		return a.item
	}
	return nil
}

// Stop ends the watch and takes back a wake-up that was not received.
func (w *watcher) Stop() {
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
