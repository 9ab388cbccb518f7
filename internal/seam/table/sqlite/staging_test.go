package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
)

// huge returns a body that is stored in six pieces.
func huge(text string) []byte { return bytes.Repeat([]byte(text), 6<<20/len(text)-1) }

// wantPieces checks how many pieces a file holds, and that no body waits for its transaction.
func wantPieces(t *testing.T, path string, want int) {
	t.Helper()
	if got := selectText(t, path, `SELECT CAST(COUNT(*) AS TEXT) FROM pieces`); got != fmt.Sprint(want) {
		t.Errorf("got %s pieces, want %d", got, want)
	}
	if got := selectText(t, path, `SELECT CAST(COUNT(*) AS TEXT) FROM bodies WHERE staged IS NOT NULL`); got != "0" {
		t.Errorf("%s bodies wait for a transaction", got)
	}
}

// TestHugeBodiesLiveAsLongAsTheirItems is TestLargeBodiesLiveAsLongAsTheirItems for bodies that are
// stored in pieces.
func TestHugeBodiesLiveAsLongAsTheirItems(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	var seconds atomic.Int64
	seconds.Store(time.Now().Unix())
	tb := openTable(t, path, sqlite.WithoutSync(), sqlite.WithClock(func() time.Time { return time.Unix(seconds.Load(), 0) }))
	a, b := key("p", "a"), key("p", "b")
	stored := func(what string, body []byte, pieces int, writes ...table.Write) {
		t.Helper()
		if err := tb.Transact(t.Context(), writes...); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if body != nil {
			wantBody(t, tb, a, body)
		}
		wantPieces(t, path, pieces)
	}
	one, two := huge("one"), huge("two")
	stored("insert", one, 6, table.Put{Item: table.Item{Key: a, Body: one}, If: table.Absent()})
	stored("replace", two, 6, table.Put{Item: table.Item{Key: a, Body: two}})
	stored("change an attribute", two, 6, table.Update{Key: a, Set: table.Attrs{"n": int64(1)}})
	stored("change the body", one, 6, table.Update{Key: a, Body: one})
	stored("two at once, and a small one", two, 12, table.Update{Key: a, Body: two},
		table.Put{Item: table.Item{Key: b, Body: one}, If: table.Absent()}, table.Put{Item: table.Item{Key: key("p", "c"), Body: []byte("small")}})
	stored("delete", two, 6, table.Delete{Key: b})
	stored("make it small", []byte("small"), 0, table.Update{Key: a, Body: []byte("small")})
	stored("delete the small one", nil, 0, table.Delete{Key: a})
	expires := time.Unix(seconds.Load()+60, 0)
	stored("expiring", one, 6, table.Put{Item: table.Item{Key: a, Body: one, Expires: expires}, If: table.Absent()})
	seconds.Add(61)
	stored("insert over what has expired", two, 6, table.Put{Item: table.Item{Key: a, Body: two}, If: table.Absent()})

	copied := filepath.Join(t.TempDir(), "copy.db")
	wantError(t, sqlite.Backup(t.Context(), path, copied), nil)
	wantBody(t, openTable(t, copied), a, two)
}

// TestATransactionThatFailsLeavesNoPieces if a condition does not hold, if its context ends, and if
// the store refuses it.
func TestATransactionThatFailsLeavesNoPieces(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	tb := openTable(t, path, sqlite.WithoutSync())
	execute(t, path, `CREATE TRIGGER poison BEFORE INSERT ON items WHEN NEW.sk = 'poison' BEGIN SELECT RAISE(ABORT, 'poisoned'); END;`)
	a := key("p", "a")
	wantError(t, tb.Transact(t.Context(), table.Put{Item: table.Item{Key: a, Body: huge("one")}}), nil)
	fresh := table.Put{Item: table.Item{Key: a, Body: huge("two")}, If: table.Absent()}
	other := table.Put{Item: table.Item{Key: key("p", "b"), Body: huge("two")}, If: table.Absent()}
	var failed *table.ConditionFailed
	for name, writes := range map[string][]table.Write{
		"the item is there":              {fresh},
		"the item is there, and another": {other, fresh},
		"a check":                        {other, table.Check{Key: a, If: table.Absent()}},
		"an update of no item":           {table.Update{Key: key("p", "none"), Body: huge("two")}},
	} {
		if err := tb.Transact(t.Context(), writes...); !errors.As(err, &failed) {
			t.Errorf("%s: got %v, want a failed condition", name, err)
		}
		wantBody(t, tb, a, huge("one"))
		wantPieces(t, path, 6)
	}
	if err := tb.Transact(t.Context(), table.Put{Item: table.Item{Key: key("p", "poison"), Body: huge("two")}}); err == nil {
		t.Error("the store has taken what it must refuse")
	}
	wantPieces(t, path, 6)
	ctx := &lateContext{Context: t.Context()}
	ctx.ended.Store(true)
	wantError(t, tb.Transact(ctx, other), context.Canceled)
	wantPieces(t, path, 6)
	wantError(t, tb.Transact(t.Context(), other), nil)
	wantBody(t, tb, key("p", "b"), huge("two"))
}

// TestWhatADeadProcessStagedIsErased an hour later, and not before.
func TestWhatADeadProcessStagedIsErased(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	var seconds atomic.Int64
	begun := time.Now().Unix()
	seconds.Store(begun)
	tb := openTable(t, path, sqlite.WithClock(func() time.Time { return time.Unix(seconds.Load(), 0) }))
	execute(t, path, fmt.Sprintf(`INSERT INTO bodies (id, body, size, staged) VALUES (7, x'', 3, %d); INSERT INTO pieces (body_id, piece) VALUES (7, x'010203')`,
		time.Unix(begun, 0).UnixNano()))
	for _, test := range []struct {
		after int64
		want  string
	}{{3590, "1"}, {3601, "0"}} {
		seconds.Store(begun + test.after)
		// The first of these writes lets the writer erase, the second one proves that it has.
		for range 2 {
			wantError(t, tb.Transact(t.Context(), table.Put{Item: table.Item{Key: key("p", "other")}}), nil)
		}
		if got := selectText(t, path, `SELECT CAST(COUNT(*) AS TEXT) FROM pieces`); got != test.want {
			t.Errorf("after %d s there are %s pieces, want %s", test.after, got, test.want)
		}
	}
}

// TestAttackATransactionOfAnySize: a light transaction that comes when it is the turn of a heavy
// one does not wait for all of it.
func TestAttackATransactionOfAnySize(t *testing.T) {
	t.Parallel()
	gate, between := newGate(), newGate()
	tb := openTable(t, newPath(t), sqlite.WithoutSync(), sqlite.WithClock(func() time.Time {
		between.now()
		return gate.now()
	}))
	first := gate.stopWriter(t, tb, put("first", "a"))
	ended := make(chan string, 2)
	write := func(name string, size int) {
		item := put(name, "a")
		item.Item.Body = make([]byte, size)
		if err := tb.Transact(context.Background(), item); err != nil {
			t.Error(err)
		}
		ended <- name
	}
	go write("heavy", 30<<20)
	awaitWaiting(tb, 1)
	between.shut <- struct{}{}
	close(gate.open)
	<-between.reached // the writer has committed the first, and stands before the heavy one
	wantError(t, <-first, nil)
	go write("light", 10)
	awaitWaiting(tb, 2)
	close(between.open)
	if one := <-ended; one != "light" {
		t.Errorf("%s came first", one)
	}
	<-ended
}
