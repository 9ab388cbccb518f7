package sqlite_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
)

// awaitLook returns when the table has looked for what other processes wrote, after the look of that time.
func awaitLook(t *testing.T, tb *sqlite.Table, after int64) {
	t.Helper()
	for tb.Looks() == after {
		if _, err := tb.Get(t.Context(), key("nobody", "wrote this")); !errors.Is(err, table.ErrNotFound) {
			t.Fatalf("get: %v", err)
		}
		runtime.Gosched()
	}
}

// hands is a clock that a test sets.
type hands struct{ unix atomic.Int64 }

func newHands() *hands {
	h := &hands{}
	h.unix.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	return h
}

func (h *hands) now() time.Time        { return time.Unix(0, h.unix.Load()) }
func (h *hands) move(by time.Duration) { h.unix.Add(int64(by)) }

// TestAnotherProcessWritesToWhatIsRemembered: until Lag has passed, Get may answer with what is remembered, which shows that it is; then it never does.
func TestAnotherProcessWritesToWhatIsRemembered(t *testing.T) {
	t.Parallel()
	path, clock := newPath(t), newHands()
	tb, other := openTable(t, path, sqlite.WithClock(clock.now), sqlite.WithMemory()), openTable(t, path, sqlite.WithClock(clock.now))
	k := key("p", "a")
	write := func(to *sqlite.Table, n int64) {
		t.Helper()
		if err := to.Transact(t.Context(), table.Put{Item: table.Item{Key: k, Attrs: table.Attrs{"n": n}, Body: fmt.Append(nil, n)}}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(n int64, when string) {
		t.Helper()
		item, err := tb.Get(t.Context(), k)
		if err != nil || item.Int("n") != n || string(item.Body) != fmt.Sprint(n) {
			t.Errorf("%s: got %+v (%v), want %d", when, item, err, n)
		}
	}
	write(tb, 1)
	awaitLook(t, tb, 0)
	want(1, "at first")
	for n := int64(2); n < 6; n += 2 {
		write(other, n)
		want(n-1, "as long as it may be remembered")
		before := tb.Looks()
		clock.move(sqlite.Lag)
		if n == 2 { // reading it remembers it anew
			want(n, "after that time")
		}
		awaitLook(t, tb, before)
		want(n, "when the writer has looked")
		write(tb, n+1)
		want(n+1, "after a change by this process")
		want(n+1, "and once more")
	}
	write(other, 6)
	var failed *table.ConditionFailed
	if err := tb.Transact(t.Context(), table.Check{Key: k, If: table.Equals("n", int64(5))}); !errors.As(err, &failed) {
		t.Errorf("a condition on what is remembered: got %v, want that it fails", err)
	}
	want(6, "after a condition that failed")
	if err := other.Transact(t.Context(), table.Delete{Key: k}); err != nil {
		t.Fatal(err)
	}
	clock.move(-time.Hour)
	wantStored(t, tb, k, false) // what was known at a time to come is not known
}

func TestWhatIsRememberedExpires(t *testing.T) {
	t.Parallel()
	clock := newHands()
	tb := openTable(t, newPath(t), sqlite.WithClock(clock.now), sqlite.WithMemory())
	k := key("p", "a")
	if err := tb.Transact(t.Context(), table.Put{Item: table.Item{Key: k, Expires: clock.now().Add(time.Second)}}); err != nil {
		t.Fatal(err)
	}
	clock.move(time.Second - sqlite.Lag/2)
	awaitLook(t, tb, 0)
	wantStored(t, tb, k, true)
	clock.move(sqlite.Lag / 2)
	wantStored(t, tb, k, false)
}

// TestWhatIsRememberedNeverGoesBack writes and reads the same items from many sides: whoever has written sees it, and nobody who has seen a change in the file
// is shown by Get what was before.
func TestWhatIsRememberedNeverGoesBack(t *testing.T) {
	t.Parallel()
	tb := openTable(t, newPath(t), sqlite.WithMemory())
	items := []table.Key{key("p", "a"), key("p", "b"), key("q", "a")}
	for _, k := range items {
		if err := tb.Transact(t.Context(), table.Put{Item: table.Item{Key: k, Attrs: table.Attrs{"n": int64(0)}}}); err != nil {
			t.Fatal(err)
		}
	}
	awaitLook(t, tb, 0)
	var written atomic.Bool
	var writers, readers sync.WaitGroup
	for _, k := range items {
		atLeast := func(n int64, who string) {
			item, err := tb.Get(t.Context(), k)
			if err != nil || item.Int("n") < n {
				t.Errorf("%s: got %+v (%v), want no less than %d", who, item, err, n)
			}
		}
		writers.Go(func() {
			for n := range int64(300) {
				if err := tb.Transact(t.Context(), table.Update{Key: k, Add: map[string]int64{"n": 1}}); err != nil {
					t.Error(err)
					return
				}
				atLeast(n+1, "who has written")
			}
		})
		for range 2 {
			readers.Go(func() {
				for !written.Load() {
					inFile, err := tb.GetBatch(t.Context(), k)
					if err != nil {
						t.Error(err)
						return
					}
					atLeast(inFile[0].Int("n"), "who has seen it in the file")
				}
			})
		}
	}
	writers.Wait()
	written.Store(true)
	readers.Wait()
}

// TestWhatWasWrittenIsRemembered has one group of transactions, some of which are refused, on a row that is remembered: then it is as the last one left it.
func TestWhatWasWrittenIsRemembered(t *testing.T) {
	t.Parallel()
	k := key("p", "a")
	update := func(n int64, body string, onlyAfter int64) table.Write {
		u := table.Update{Key: k, Set: table.Attrs{"n": n}, If: table.Equals("n", onlyAfter)}
		if body != "" {
			u.Body = []byte(body)
		}
		return u
	}
	type transaction = []table.Write
	refused := table.Check{Key: key("nobody", "wrote this"), If: table.Present()}
	large := strings.Repeat("large", 10_000)
	for name, c := range map[string]struct {
		group []transaction
		// n and body are those at the end, "" where there is no item.
		n          int64
		body       string
		remembered bool
	}{
		"two changes":              {[]transaction{{update(1, "1", 0)}, {update(2, "2", 1)}}, 2, "2", true},
		"of a condition of it":     {[]transaction{{update(1, "1", 0)}, {update(2, "2", 7)}}, 1, "1", false},
		"of another condition":     {[]transaction{{update(1, "1", 0)}, {update(2, "2", 1), refused}}, 1, "1", true},
		"only refused":             {[]transaction{{update(2, "2", 0), refused}}, 0, "0", true},
		"not all of it":            {[]transaction{{update(1, "1", 0)}, {update(2, "", 1)}}, 2, "1", false},
		"another item":             {[]transaction{{table.Put{Item: table.Item{Key: k, Attrs: table.Attrs{"n": int64(4)}, Body: []byte("4")}}}}, 4, "4", true},
		"deleted":                  {[]transaction{{update(1, "1", 0)}, {table.Delete{Key: k}}}, 0, "", false},
		"only looked at":           {[]transaction{{table.Check{Key: k, If: table.Present()}}}, 0, "0", true},
		"too large to remember it": {[]transaction{{update(1, large, 0)}}, 1, large, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := newGate()
			tb := openTable(t, newPath(t), sqlite.WithClock(gate.now), sqlite.WithMemory())
			if err := tb.Transact(t.Context(), table.Put{Item: table.Item{
				Key: k, Attrs: table.Attrs{"n": int64(0), "other": "stays"}, Body: []byte("0"), Expires: gate.now().Add(time.Hour),
				Index: map[table.Index]table.Key{table.ByList: key("list", "a")},
			}}); err != nil {
				t.Fatal(err)
			}
			awaitLook(t, tb, 0)
			wantStored(t, tb, k, true)
			if !tb.Remembers(k) {
				t.Error("what is read is not remembered")
			}
			first := gate.stopWriter(t, tb, put("other", "a"))
			var results []<-chan error
			for i, writes := range c.group {
				results = append(results, transact(t, tb, writes...))
				awaitWaiting(tb, i+1)
			}
			close(gate.open)
			wantError(t, <-first, nil)
			for _, result := range results {
				var failed *table.ConditionFailed
				if err := <-result; err != nil && !errors.As(err, &failed) {
					t.Error(err)
				}
			}
			if got := tb.Remembers(k); got != c.remembered {
				t.Errorf("remembered: got %v, want %v", got, c.remembered)
			}
			got, err := tb.Get(t.Context(), k)
			if c.body == "" {
				if !errors.Is(err, table.ErrNotFound) {
					t.Errorf("got %+v (%v), want none", got, err)
				}
				return
			}
			if err != nil || got.Int("n") != c.n || string(got.Body) != c.body {
				t.Errorf("got %+v (%v), want %d", got, err, c.n)
			}
			inFile, err := tb.GetBatch(t.Context(), k)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(inFile[0], got); diff != "" {
				t.Errorf("what is remembered (+) is not what is in the file (-):\n%s", diff)
			}
		})
	}
}
