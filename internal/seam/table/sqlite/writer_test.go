package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
)

// TestErrorInGroupFailsOnlyItsTransaction makes the store itself refuse one write, in each way
// in which SQLite can leave the surrounding transaction, and at each place of a group.
func TestErrorInGroupFailsOnlyItsTransaction(t *testing.T) {
	t.Parallel()
	const size = 12
	for _, action := range []string{"ABORT", "FAIL", "ROLLBACK"} {
		for _, poisoned := range []int{0, 1, size / 2, size - 1} {
			t.Run(fmt.Sprintf("%s at %d", action, poisoned), func(t *testing.T) {
				t.Parallel()
				path, gate := newPath(t), newGate()
				tb := openTable(t, path, sqlite.WithClock(gate.now))
				execute(t, path, `CREATE TRIGGER poison BEFORE INSERT ON items WHEN NEW.sk = 'poison'
					BEGIN SELECT RAISE(`+action+`, 'poisoned'); END;`)
				first := gate.stopWriter(t, tb, put("first", "a"), put("first", "b"))
				var results []<-chan error
				for i := range size {
					middle := "fine"
					if i == poisoned {
						middle = "poison"
					}
					results = append(results, transact(t, tb, put(pk(i), "a"), put(pk(i), middle), put(pk(i), "z")))
					awaitWaiting(tb, i+1)
				}
				close(gate.open)
				wantError(t, <-first, nil)
				for i, result := range results {
					err := <-result
					if failed := err != nil; failed != (i == poisoned) {
						t.Errorf("transaction %d: got error %v, want one: %v", i, err, i == poisoned)
					}
					for _, sk := range []string{"a", "z"} {
						wantStored(t, tb, key(pk(i), sk), i != poisoned)
					}
				}
				wantError(t, tb.Transact(t.Context(), put("later", "a")), nil)
			})
		}
	}
}

func TestGroupDecidesEachTransactionOnTheOnesBefore(t *testing.T) {
	t.Parallel()
	gate := newGate()
	tb := openTable(t, newPath(t), sqlite.WithClock(gate.now))
	first := gate.stopWriter(t, tb, put("p", "a"))
	var results []<-chan error
	for i, writes := range [][]table.Write{
		{put("p", "b"), put("p", "a")},
		{table.Delete{Key: key("p", "a"), If: table.Present()}},
		{put("p", "b"), put("p", "a")},
		{table.Check{Key: key("p", "b"), If: table.Absent()}},
	} {
		results = append(results, transact(t, tb, writes...))
		awaitWaiting(tb, i+1)
	}
	close(gate.open)
	wantError(t, <-first, nil)
	for i, want := range []bool{false, true, true, false} {
		err := <-results[i]
		var failed *table.ConditionFailed
		if got := err == nil; got != want || err != nil && !errors.As(err, &failed) {
			t.Errorf("transaction %d: got error %v, want success: %v", i, err, want)
		}
	}
}

func TestContextThatEndsBeforeTheTransactionIsTakenUp(t *testing.T) {
	t.Parallel()
	gate := newGate()
	tb := openTable(t, newPath(t), sqlite.WithClock(gate.now))
	first := gate.stopWriter(t, tb, put("p", "first"))
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- tb.Transact(ctx, put("p", "given up")) }()
	awaitWaiting(tb, 1)
	cancel()
	wantError(t, <-result, context.Canceled)
	close(gate.open)
	wantError(t, <-first, nil)
	wantError(t, tb.Transact(t.Context(), put("p", "last")), nil)
	wantStored(t, tb, key("p", "first"), true)
	wantStored(t, tb, key("p", "given up"), false)
	wantStored(t, tb, key("p", "last"), true)
}

// lateContext ends without waking the goroutine that waits for it, as when the caller's
// goroutine runs too late.
type lateContext struct {
	context.Context
	ended atomic.Bool
}

func (c *lateContext) Done() <-chan struct{} { return nil }

func (c *lateContext) Err() error {
	if c.ended.Load() {
		return context.Canceled
	}
	return nil
}

func TestContextThatEndsUnnoticedBeforeTheTransactionIsTakenUp(t *testing.T) {
	t.Parallel()
	gate := newGate()
	tb := openTable(t, newPath(t), sqlite.WithClock(gate.now))
	first := gate.stopWriter(t, tb, put("p", "first"))
	ctx := &lateContext{Context: t.Context()}
	result := make(chan error, 1)
	go func() { result <- tb.Transact(ctx, put("p", "late")) }()
	awaitWaiting(tb, 1)
	ctx.ended.Store(true)
	close(gate.open)
	wantError(t, <-first, nil)
	wantError(t, <-result, context.Canceled)
	wantStored(t, tb, key("p", "late"), false)
}

func TestContextThatEndsAfterTheTransactionWasTakenUp(t *testing.T) {
	t.Parallel()
	gate := newGate()
	tb := openTable(t, newPath(t), sqlite.WithClock(gate.now))
	ctx, cancel := context.WithCancel(t.Context())
	gate.shut <- struct{}{}
	result := make(chan error, 1)
	go func() { result <- tb.Transact(ctx, put("p", "taken up")) }()
	<-gate.reached
	cancel()
	close(gate.open)
	wantError(t, <-result, nil)
	wantStored(t, tb, key("p", "taken up"), true)
}

func TestCloseFinishesWhatWaits(t *testing.T) {
	t.Parallel()
	path, gate := newPath(t), newGate()
	tb := openTable(t, path, sqlite.WithClock(gate.now))
	first := gate.stopWriter(t, tb, put("p", "first"))
	var results []<-chan error
	for i := range 20 {
		results = append(results, transact(t, tb, put(pk(i), "a")))
	}
	awaitWaiting(tb, len(results))
	closed := make(chan error, 1)
	go func() { closed <- tb.Close() }()
	close(gate.open)
	wantError(t, <-closed, nil)
	wantError(t, <-first, nil)
	reopened := openTable(t, path)
	for i, result := range results {
		wantError(t, <-result, nil)
		wantStored(t, reopened, key(pk(i), "a"), true)
	}
}

func pk(i int) string { return fmt.Sprint("partition ", i) }

func transact(t *testing.T, tb table.Table, writes ...table.Write) <-chan error {
	t.Helper()
	result := make(chan error, 1)
	go func() { result <- tb.Transact(t.Context(), writes...) }()
	return result
}

func wantError(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got error %v, want %v", got, want)
	}
}

// TestAttackHeavyTransactions of any number and size: a light transaction waits for at most
// one of them, and light ones do not keep a heavy one from being committed.
func TestAttackHeavyTransactions(t *testing.T) {
	t.Parallel()
	const heavies = 6
	gate := newGate()
	tb := openTable(t, newPath(t), sqlite.WithClock(gate.now))
	first := gate.stopWriter(t, tb, put("first", "a"))
	ended := make(chan string, 2*heavies)
	waiting := 0
	write := func(name string, size int) {
		go func() {
			item := put(name, "a")
			item.Item.Body = make([]byte, size)
			if err := tb.Transact(context.Background(), item); err != nil {
				t.Error(err)
			}
			ended <- name
		}()
		waiting++
		awaitWaiting(tb, waiting)
	}
	for i := range heavies {
		write(fmt.Sprint("heavy ", i), 5<<20)
	}
	write("light", 10)
	close(gate.open)
	wantError(t, <-first, nil)
	if one, two := <-ended, <-ended; one != "light" && two != "light" {
		t.Errorf("%s and %s came before the light one", one, two)
	}
	for range heavies - 1 {
		<-ended
	}
}
