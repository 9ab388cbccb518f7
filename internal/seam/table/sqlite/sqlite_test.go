package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	zombiezen "zombiezen.com/go/sqlite"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestOpenRefusesFilesOfOtherVersions(t *testing.T) {
	t.Parallel()
	for version, why := range map[string]string{fmt.Sprint(sqlite.SchemaVersion + 1): "newer version of the program", "2": "never released"} {
		path := newPath(t)
		closeAll(t, openTable(t, path))
		execute(t, path, `PRAGMA user_version = `+version)
		tb, err := sqlite.Open(path)
		if err == nil {
			closeAll(t, tb)
			t.Fatal("got no error, want one")
		}
		for _, want := range []string{path, "schema version " + version, why} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("got error %q, want it to contain %q", err, want)
			}
		}
		if got := selectText(t, path, `PRAGMA user_version`); got != version {
			t.Errorf("got version %s afterwards, want %s", got, version)
		}
	}
}

func TestOpenWithoutFolderIsAnError(t *testing.T) {
	t.Parallel()
	if tb, err := sqlite.Open(filepath.Join(t.TempDir(), "none", "table.db")); err == nil {
		closeAll(t, tb)
		t.Error("got no error, want one")
	}
}

func TestManyOpenOneNewFileAtOnce(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			tb, err := sqlite.Open(path)
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			defer closeAll(t, tb)
			wantError(t, tb.Transact(t.Context(), put(pk(i), "a")), nil)
		})
	}
	running.Wait()
	tb := openTable(t, path)
	for i := range 8 {
		wantStored(t, tb, key(pk(i), "a"), true)
	}
}

func TestClosedTableRefusesEverything(t *testing.T) {
	t.Parallel()
	tb := openTable(t, newPath(t))
	wantError(t, tb.Transact(t.Context(), put("p", "a")), nil)
	closeAll(t, tb, tb)
	_, err := tb.Get(t.Context(), key("p", "a"))
	wantError(t, err, sqlite.ErrClosed)
	_, err = tb.GetBatch(t.Context(), key("p", "a"))
	wantError(t, err, sqlite.ErrClosed)
	_, err = tb.Query(t.Context(), table.Query{PK: "p"})
	wantError(t, err, sqlite.ErrClosed)
	wantError(t, tb.Transact(t.Context(), put("p", "b")), sqlite.ErrClosed)
}

func TestReadsReturnOrAreRefusedWhileClosing(t *testing.T) {
	t.Parallel()
	tb := openTable(t, newPath(t))
	wantError(t, tb.Transact(t.Context(), put("p", "a")), nil)
	var running sync.WaitGroup
	for range 16 {
		running.Go(func() {
			for {
				if _, err := tb.Get(t.Context(), key("p", "a")); err != nil {
					wantError(t, err, sqlite.ErrClosed)
					return
				}
			}
		})
	}
	closeAll(t, tb)
	running.Wait()
}

// TestBatchIsOneMoment moves an amount between two items and looks at both.
func TestBatchIsOneMoment(t *testing.T) {
	t.Parallel()
	tb := openTable(t, newPath(t))
	a, b := key("p", "a"), key("q", "b")
	wantError(t, tb.Transact(t.Context(), table.Put{Item: table.Item{Key: a}}, table.Put{Item: table.Item{Key: b}}), nil)
	var done atomic.Bool
	var moving sync.WaitGroup
	moving.Go(func() {
		for range 300 {
			wantError(t, tb.Transact(t.Context(),
				table.Update{Key: a, Add: map[string]int64{"n": 1}}, table.Update{Key: b, Add: map[string]int64{"n": -1}}), nil)
		}
		done.Store(true)
	})
	for !done.Load() {
		items, err := tb.GetBatch(t.Context(), a, b)
		check.Must(t, err)
		if sum := items[0].Int("n") + items[1].Int("n"); sum != 0 {
			t.Fatalf("got a sum of %d, want 0", sum)
		}
	}
	moving.Wait()
}

func TestExpiredItemsAreErased(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	var seconds atomic.Int64
	seconds.Store(time.Now().Unix())
	tb := openTable(t, path, sqlite.WithClock(func() time.Time { return time.Unix(seconds.Load(), 0) }))
	const expiring = 700
	for i := range expiring {
		item := table.Item{Key: key(pk(i), "a"), Expires: time.Unix(seconds.Load()+60, 0)}
		if i%2 == 0 {
			item.Index = map[table.Index]table.Key{table.ByDue: key("due", "a")}
		}
		wantError(t, tb.Transact(t.Context(), table.Put{Item: item}), nil)
	}
	wantError(t, tb.Transact(t.Context(), put("p", "stays")), nil)
	wantRows(t, path, expiring+1)
	seconds.Add(61)
	// Each of these writes lets the writer erase a batch, the last one proves that it has
	// erased.
	for range 5 {
		wantError(t, tb.Transact(t.Context(), table.Update{Key: key("p", "stays")}), nil)
	}
	wantRows(t, path, 1)
	wantStored(t, tb, key("p", "stays"), true)
}

func wantRows(t *testing.T, path string, want int) {
	t.Helper()
	if got := selectText(t, path, `SELECT CAST(COUNT(*) AS TEXT) FROM items`); got != fmt.Sprint(want) {
		t.Errorf("got %s rows, want %d", got, want)
	}
}

func TestWatcherIsWokenOnceAndForItsKeyOnly(t *testing.T) {
	t.Parallel()
	tb := openTable(t, newPath(t))
	w, other := tb.Watch(key("p", "a")), tb.Watch(key("p", "b"))
	defer w.Stop()
	defer other.Stop()
	for range 10 {
		wantError(t, tb.Transact(t.Context(), table.Put{Item: table.Item{Key: key("p", "a")}}, table.Check{Key: key("p", "b"), If: table.Absent()}), nil)
	}
	wantError(t, tb.Transact(t.Context(), table.Put{Item: table.Item{Key: key("p", "a")}}, put("p", "c")), nil)
	if err := tb.Transact(t.Context(), put("p", "b"), put("p", "c")); err == nil {
		t.Error("got no error, want a failed condition")
	}
	if got := len(w.C()); got != 1 {
		t.Errorf("written key: got %d wake-ups, want 1", got)
	}
	if got := len(other.C()); got != 0 {
		t.Errorf("key that was only checked or failed to be written: got %d wake-ups, want 0", got)
	}
}

// TestEveryReadIsOneRange checks that no statement's plan scans or sorts.
func TestEveryReadIsOneRange(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	openTable(t, path)
	conn, err := zombiezen.OpenConn(path, zombiezen.OpenReadWrite)
	check.Must(t, err)
	defer closeAll(t, conn)
	for _, sql := range sqlite.Statements() {
		stmt := conn.Prep(`EXPLAIN QUERY PLAN ` + sql)
		var steps []string
		for {
			more, err := stmt.Step()
			check.Must(t, err)
			if !more {
				break
			}
			steps = append(steps, stmt.ColumnText(3))
		}
		if len(steps) != 1 || !strings.HasPrefix(steps[0], "SEARCH items USING") {
			t.Errorf("plan of %s:\ngot %q, want one search", sql, steps)
		}
	}
}

func TestDamagedAttributesAreAnError(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	tb := openTable(t, path)
	wantError(t, tb.Transact(t.Context(), put("p", "a")), nil)
	for _, damaged := range []string{"ff", "05", "0161", "016173", "01617305", "016178", "01617402", "ffffffffffffffffff01"} {
		execute(t, path, `UPDATE items SET attrs = x'`+damaged+`'`)
		if item, err := tb.Get(t.Context(), key("p", "a")); err == nil {
			t.Errorf("attributes %s: got %v, want an error", damaged, item.Attrs)
		}
		err := tb.Transact(t.Context(), table.Update{Key: key("p", "a"), Set: table.Attrs{"n": int64(1)}})
		var failed *table.ConditionFailed
		if err == nil || errors.As(err, &failed) {
			t.Errorf("update of attributes %s: got error %v, want one of the store", damaged, err)
		}
	}
}
