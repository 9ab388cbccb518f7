package sqlite

import (
	"context"
	"strings"
	"sync"
	"time"
)

// turns gives a number of places to readers. When some wait, the owner whose reads have taken the
// least time gets the next place, and for one owner the partition whose have. So nobody waits for
// all who read one large partition, no owner for all who read another's, and short reads go before
// long ones.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting line
}

// line is a number of waiters who are in turn by name, or one after the other.
type line struct {
	name    string
	named   map[string]*line
	waiters []*waiter
	// used is how much time its reads have taken, from present on: how much those that had their
	// turn last have taken of the line around it.
	used, present time.Duration
	// waits and runs count those who wait and those who have a place.
	waits, runs int
}

type waiter struct {
	// ready is closed when the waiter has the place.
	ready chan struct{}
	place place
	gone  bool
}

// place is a place with the lines that it was got in, the outer one first; none when nobody waited.
type place []*line

func newTurns(places int) *turns { return &turns{free: places} }

// take waits for a place to read a partition.
func (t *turns) take(ctx context.Context, partition string) (place, error) {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return nil, nil
	}
	w := &waiter{ready: make(chan struct{})}
	t.waiting.add(w, ownerOf(partition), partition)
	t.mu.Unlock()
	select {
	case <-w.ready:
		return w.place, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	w.gone = true
	t.mu.Unlock()
	select {
	case <-w.ready: // the place came at the same time
		t.give(w.place, 0)
	default:
	}
	return nil, ctx.Err()
}

// give hands back a place that was held for some time.
func (t *turns) give(p place, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	around := &t.waiting
	for _, l := range p {
		l.runs--
		l.used += took
		around.forget(l)
		around = l
	}
	if w := t.waiting.next(); w != nil {
		close(w.ready)
		return
	}
	t.free++
}

// ownerOf is what the partitions of one owner have in common: the first two parts of their names.
func ownerOf(partition string) string {
	kind, rest, _ := strings.Cut(partition, "#")
	name, _, _ := strings.Cut(rest, "#")
	return kind + "#" + name
}

func (l *line) add(w *waiter, path ...string) {
	l.waits++
	if len(path) == 0 {
		l.waiters = append(l.waiters, w)
		return
	}
	if l.named == nil {
		l.named = map[string]*line{}
	}
	of := l.named[path[0]]
	if of == nil {
		of = &line{name: path[0]}
		l.named[of.name] = of
	}
	if of.waits == 0 { // time without a waiter is not saved up
		of.used = max(of.used, l.present)
	}
	w.place = append(w.place, of)
	of.add(w, path[1:]...)
}

// next takes the waiter out whose turn it is; nil for none.
func (l *line) next() *waiter {
	for l.waits > 0 {
		of := l
		for of.named != nil {
			of.waits--
			of = of.least()
		}
		of.waits--
		w := of.waiters[0]
		of.waiters = of.waiters[1:]
		if !w.gone {
			for _, held := range w.place {
				held.runs++
			}
			return w
		}
		around := l
		for _, left := range w.place {
			around.forget(left)
			around = left
		}
	}
	return nil
}

// least is the line in which somebody waits whose reads have taken the least time.
func (l *line) least() *line {
	var least *line
	for _, of := range l.named {
		if of.waits > 0 && (least == nil || of.used < least.used) {
			least = of
		}
	}
	l.present = least.used
	return least
}

// forget drops a line that nobody is in.
func (l *line) forget(of *line) {
	if of.waits == 0 && of.runs == 0 && l.named[of.name] == of {
		delete(l.named, of.name)
	}
}
