package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// inLine are the readers that wait for a place, in the order in which they came.
type inLine struct {
	*turns
	served chan string
}

// wait starts a reader that waits for a place to read the partition, and returns when it
// waits.
func (l inLine) wait(ctx context.Context, t *testing.T, partition string) {
	t.Helper()
	before := l.count()
	go func() {
		if l.acquire(ctx, partition) == nil {
			l.served <- partition
		}
	}()
	for l.count() == before {
		runtime.Gosched()
	}
}

func (l inLine) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting.count()
}

// count returns how many waiters have not gone.
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

// TestAttackReadersOfOnePartition of any number: a reader of another partition waits for at
// most one of them, and a reader of another owner waits for at most one reader of each owner.
func TestAttackReadersOfOnePartition(t *testing.T) {
	t.Parallel()
	const attackers = 50
	l := inLine{newTurns(1), make(chan string)}
	check.Must(t, l.acquire(t.Context(), "W#a#RUN#1"))
	for range attackers {
		l.wait(t.Context(), t, "W#a#RUN#1")
	}
	for n := range attackers {
		l.wait(t.Context(), t, fmt.Sprint("W#a#THREAD#", n))
	}
	l.wait(t.Context(), t, "W#b#THREAD#1")
	gone, cancel := context.WithCancel(t.Context())
	l.wait(gone, t, "W#c#THREAD#1")
	for cancel(); l.count() > 2*attackers+1; runtime.Gosched() {
	}
	order := map[string]int{}
	for n := range 2*attackers + 1 {
		l.give()
		if served := <-l.served; order[served] == 0 {
			order[served] = n + 1
		}
	}
	for partition, most := range map[string]int{"W#b#THREAD#1": 2, "W#a#THREAD#0": 3} {
		if order[partition] > most {
			t.Errorf("the reader of %s was the %d. one to get a place, want the %d. at latest", partition, order[partition], most)
		}
	}
	l.give()
	if l.free != 1 || l.count() != 0 {
		t.Errorf("%d places are free, and %d wait", l.free, l.count())
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := l.acquire(t.Context(), "p"); err != nil {
		t.Error(err)
	}
	if err := l.acquire(ended, "p"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
