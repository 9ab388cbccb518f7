package sqlite

import (
	"context"
	"strings"
	"sync"
)

// turns gives a number of places to readers. Waiting readers get places in turn by the owner
// whose items they read, and within one owner in turn by partition. So no reader waits for all
// the readers of one large partition, and no owner waits for all the readers of another
// owner's items.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting line
}

// line is a queue of waiters. They get places in turn by name, or one after the other.
type line struct {
	// order has the names of the lines that have waiters, the next one first.
	order   []string
	named   map[string]*line
	waiters []*waiter
}

type waiter struct {
	// ready is closed when the waiter has a place.
	ready chan struct{}
	gone  bool
}

func newTurns(places int) *turns { return &turns{free: places} }

// acquire waits for a place to read a partition.
func (t *turns) acquire(ctx context.Context, partition string) error {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return nil
	}
	w := &waiter{ready: make(chan struct{})}
	t.waiting.add(w, ownerOf(partition), partition)
	t.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	w.gone = true
	t.mu.Unlock()
	select {
	case <-w.ready: // the place came at the same time
		t.give()
	default:
	}
	return ctx.Err()
}

// give hands a place back.
func (t *turns) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.waiting.next(); w != nil {
		close(w.ready)
		return
	}
	t.free++
}

// ownerOf is the common part of the partitions of one owner: the first two parts of their
// names.
func ownerOf(partition string) string {
	kind, rest, _ := strings.Cut(partition, "#")
	name, _, _ := strings.Cut(rest, "#")
	return kind + "#" + name
}

func (l *line) add(w *waiter, path ...string) {
	if len(path) == 0 {
		l.waiters = append(l.waiters, w)
		return
	}
	if l.named == nil {
		l.named = map[string]*line{}
	}
	of := l.named[path[0]]
	if of == nil {
		of = &line{}
		l.named[path[0]] = of
		l.order = append(l.order, path[0])
	}
	of.add(w, path[1:]...)
}

// next removes and returns the waiter whose turn it is. It returns nil if there is no waiter.
func (l *line) next() *waiter {
	for len(l.waiters) > 0 {
		w := l.waiters[0]
		l.waiters = l.waiters[1:]
		if !w.gone {
			return w
		}
	}
	for len(l.order) > 0 {
		name := l.order[0]
		l.order = l.order[1:]
		of := l.named[name]
		w := of.next()
		if len(of.waiters) == 0 && len(of.order) == 0 {
			delete(l.named, name)
		} else {
			l.order = append(l.order, name)
		}
		if w != nil {
			return w
		}
	}
	return nil
}
