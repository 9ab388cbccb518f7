package sqlite

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
)

// inLine are those who wait for a place, in the order in which they came.
type inLine struct {
	*turns
	served chan served
}

// served is a partition that somebody reads.
type served struct {
	partition string
	place
}

// wait has somebody wait for a place to read the partition, and returns when they do.
func (l inLine) wait(ctx context.Context, t *testing.T, partition string) {
	t.Helper()
	before := l.count()
	go func() {
		if p, err := l.take(ctx, partition); err == nil {
			l.served <- served{partition, p}
		}
	}()
	for l.count() == before {
		runtime.Gosched()
	}
}

// count is how many wait who have not gone.
func (l inLine) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting.count()
}

func (l *line) count() int {
	n := 0
	for _, w := range l.waiters {
		if !w.gone {
			n++
		}
	}
	for _, of := range l.named {
		n += of.count()
	}
	return n
}

// order has all who wait read, each for a time, and returns which reader of each partition was the
// first, counted from 1.
func (l inLine) order(readers int, takes func(partition string) time.Duration) map[string]int {
	order := map[string]int{}
	last, took := place(nil), time.Duration(0)
	for n := range readers {
		l.give(last, took)
		next := <-l.served
		if last, took = next.place, takes(next.partition); order[next.partition] == 0 {
			order[next.partition] = n + 1
		}
	}
	l.give(last, took)
	return order
}

// TestAttackReadersOfOnePartition wait in any number: a reader of another partition waits for few
// of them, and one of another owner for few of each owner.
func TestAttackReadersOfOnePartition(t *testing.T) {
	t.Parallel()
	const attackers = 50
	l := inLine{newTurns(1), make(chan served)}
	if _, err := l.take(t.Context(), "W#a#RUN#1"); err != nil {
		t.Fatal(err)
	}
	for range attackers {
		l.wait(t.Context(), t, "W#a#RUN#1")
	}
	l.wait(t.Context(), t, "W#a#THREAD#1")
	l.wait(t.Context(), t, "W#b#THREAD#1")
	gone, cancel := context.WithCancel(t.Context())
	l.wait(gone, t, "W#c#THREAD#1")
	for cancel(); l.count() > attackers+2; runtime.Gosched() {
	}
	order := l.order(attackers+2, func(string) time.Duration { return time.Second })
	for partition, most := range map[string]int{"W#b#THREAD#1": 2, "W#a#THREAD#1": 3} {
		if order[partition] > most {
			t.Errorf("the reader of %s was the %d. one to get a place, want the %d. at latest", partition, order[partition], most)
		}
	}
	if l.free != 1 || l.waiting.waits != 0 || len(l.waiting.named) != 0 {
		t.Errorf("%d places are free, %d wait, and %d lines are left", l.free, l.waiting.waits, len(l.waiting.named))
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := l.take(t.Context(), "p"); err != nil {
		t.Error(err)
	}
	if _, err := l.take(ended, "p"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestAttackLongReads let all short ones pass that take less time together than one of theirs.
func TestAttackLongReads(t *testing.T) {
	t.Parallel()
	const long, short = 20, 40
	l := inLine{newTurns(1), make(chan served)}
	if _, err := l.take(t.Context(), "W#a#RUN#1"); err != nil {
		t.Fatal(err)
	}
	for range long {
		l.wait(t.Context(), t, "W#a#RUN#1")
	}
	for range short {
		l.wait(t.Context(), t, "KEY#a")
	}
	shorts, between := 0, 0
	l.order(long+short, func(partition string) time.Duration {
		if partition == "KEY#a" {
			shorts++
			return time.Millisecond
		}
		if shorts < short {
			between++
		}
		return time.Second
	})
	if between > 1 { // of the first one nobody knows how long it takes
		t.Errorf("%d long reads came before the last short one", between)
	}
}
