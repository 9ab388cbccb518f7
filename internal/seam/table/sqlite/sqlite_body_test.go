package sqlite_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/test/check"
)

// large returns a body that is not kept in its item's row.
func large(text string) []byte { return bytes.Repeat([]byte(text), 100_000) }

func wantBody(t *testing.T, tb table.Table, k table.Key, want []byte) {
	t.Helper()
	item, err := tb.Get(t.Context(), k)
	if err != nil {
		t.Fatalf("get %q: %v", k, err)
	}
	if !bytes.Equal(item.Body, want) {
		t.Errorf("got a body of %d bytes, want one of %d", len(item.Body), len(want))
	}
	page, err := tb.Query(t.Context(), table.Query{PK: k.PK, Prefix: k.SK})
	if err != nil || len(page.Items) != 1 || !bytes.Equal(page.Items[0].Body, want) {
		t.Errorf("query: got %d items and %v, want one with the body", len(page.Items), err)
	}
}

// wantLarge checks how many large bodies a file holds, and that no row is large, because a
// large row would slow down the search for another row.
func wantLarge(t *testing.T, path string, want int) {
	t.Helper()
	if got := selectText(t, path, `SELECT CAST(COUNT(*) AS TEXT) FROM bodies`); got != fmt.Sprint(want) {
		t.Errorf("got %s large bodies, want %d", got, want)
	}
	if got := selectText(t, path, `SELECT CAST(COUNT(*) AS TEXT) FROM items WHERE length(body) > 2000`); got != "0" {
		t.Errorf("got %s large rows, want none", got)
	}
}

// TestLargeBodiesLiveAsLongAsTheirItems covers all ways in which an item gets a body, and
// loses it.
func TestLargeBodiesLiveAsLongAsTheirItems(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	var seconds atomic.Int64
	seconds.Store(time.Now().Unix())
	tb := openTable(t, path, sqlite.WithClock(func() time.Time { return time.Unix(seconds.Load(), 0) }))
	a := key("p", "a")
	stored := func(what string, write table.Write, body []byte, count int) {
		t.Helper()
		if err := tb.Transact(t.Context(), write); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if body != nil {
			wantBody(t, tb, a, body)
		}
		wantLarge(t, path, count)
	}
	one, two := large("one"), large("two")
	stored("insert", table.Put{Item: table.Item{Key: a, Body: one}, If: table.Absent()}, one, 1)
	stored("replace", table.Put{Item: table.Item{Key: a, Body: two}}, two, 1)
	stored("change an attribute", table.Update{Key: a, Set: table.Attrs{"n": int64(1)}}, two, 1)
	stored("change the body", table.Update{Key: a, Body: one}, one, 1)
	stored("change body and place", table.Update{Key: a, Body: two, Index: map[table.Index]table.Key{table.ByList: key("l", "a")}}, two, 1)
	stored("make it small", table.Update{Key: a, Body: []byte("small")}, []byte("small"), 0)
	stored("make it large", table.Update{Key: a, Body: one}, one, 1)
	stored("replace by a small one", table.Put{Item: table.Item{Key: a, Body: []byte("small")}}, []byte("small"), 0)
	stored("replace by a large one", table.Put{Item: table.Item{Key: a, Body: one}}, one, 1)
	refused := table.Put{Item: table.Item{Key: a, Body: two}, If: table.Absent()}
	if err := tb.Transact(t.Context(), table.Put{Item: table.Item{Key: key("p", "b"), Body: two}, If: table.Absent()}, refused); err == nil {
		t.Error("got no error, want a failed condition")
	}
	wantBody(t, tb, a, one)
	wantLarge(t, path, 1)
	stored("delete", table.Delete{Key: a}, nil, 0)
	expires := time.Unix(seconds.Load()+60, 0)
	stored("expiring", table.Put{Item: table.Item{Key: a, Body: one, Expires: expires}, If: table.Absent()}, one, 1)
	seconds.Add(61)
	stored("insert over what has expired", table.Put{Item: table.Item{Key: a, Body: two, Expires: expires.Add(time.Minute)}, If: table.Absent()}, two, 1)
	seconds.Add(61)
	// The first of these writes lets the writer erase, the second one proves that it has
	// erased.
	wantError(t, tb.Transact(t.Context(), put("p", "other")), nil)
	stored("expire", table.Update{Key: key("p", "other")}, nil, 0)
}

// thirdVersion makes a file of the version before the first release, with one item in it, whose
// body is in one piece.
const thirdVersion = `
CREATE TABLE items (
	pk TEXT NOT NULL, sk TEXT NOT NULL, expires INTEGER, list_pk TEXT, list_sk TEXT, due_pk TEXT, due_sk TEXT,
	attrs BLOB NOT NULL, body BLOB, body_id INTEGER
) STRICT;
CREATE TABLE bodies (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE UNIQUE INDEX items_by_key ON items (pk, sk);
CREATE INDEX items_by_list ON items (list_pk, list_sk, pk, sk) WHERE list_pk IS NOT NULL;
CREATE INDEX items_by_due ON items (due_pk, due_sk, pk, sk) WHERE due_pk IS NOT NULL;
CREATE INDEX items_by_expires ON items (expires) WHERE expires IS NOT NULL;
CREATE TRIGGER items_deleted AFTER DELETE ON items WHEN OLD.body_id IS NOT NULL BEGIN DELETE FROM bodies WHERE id = OLD.body_id; END;
CREATE TRIGGER items_changed AFTER UPDATE OF body_id ON items WHEN OLD.body_id IS NOT NULL BEGIN DELETE FROM bodies WHERE id = OLD.body_id; END;
INSERT INTO bodies (id, body) VALUES (7, CAST(replace(hex(zeroblob(50000)), '00', 'one') AS BLOB));
INSERT INTO items (pk, sk, list_pk, list_sk, attrs, body_id) VALUES ('p', 'a', 'l', 'a', x'016e6902', 7);
PRAGMA user_version = 3;`

// TestAFileOfAnEarlierVersionIsTakenOver with its item, which is found by its key and in its
// list, and is deleted together with its body.
func TestAFileOfAnEarlierVersionIsTakenOver(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	execute(t, path, thirdVersion)
	var told bytes.Buffer
	log := sqlite.WithLogger(slog.New(slog.NewJSONHandler(&told, nil)))
	tb := openTable(t, path, log)
	a, old := key("p", "a"), bytes.Repeat([]byte("one"), 50_000)
	wantBody(t, tb, a, old)
	page, err := tb.Query(t.Context(), table.Query{Index: table.ByList, PK: "l"})
	if err != nil || len(page.Items) != 1 || page.Items[0].Key != a {
		t.Errorf("got the list %v and %v, want the item", page.Items, err)
	}
	wantError(t, tb.Transact(t.Context(), table.Update{Key: a, Set: table.Attrs{"m": int64(2)}, If: table.Equals("n", int64(1))}), nil)
	wantBody(t, tb, a, old)
	wantError(t, tb.Transact(t.Context(), table.Update{Key: a, Body: large("two")}), nil)
	wantBody(t, tb, a, large("two"))
	wantLarge(t, path, 1)
	if got := selectText(t, path, `PRAGMA user_version`); got != fmt.Sprint(sqlite.SchemaVersion) {
		t.Errorf("got version %s, want %d", got, sqlite.SchemaVersion)
	}
	closeAll(t, tb)
	tb = openTable(t, path, log)
	wantBody(t, tb, a, large("two"))
	wantError(t, tb.Transact(t.Context(), table.Delete{Key: a}), nil)
	wantLarge(t, path, 0)
	closeAll(t, tb, openTable(t, newPath(t), log))
	wantRewriteTold(t, told.Bytes(), path, 3)
}

// TestAFileOfAnEarlierVersionStaysAsItIs if the caller asks for that, and so does a new file.
func TestAFileOfAnEarlierVersionStaysAsItIs(t *testing.T) {
	t.Parallel()
	for version, statements := range map[string]string{"3": thirdVersion, "0": `PRAGMA user_version = 0`} {
		path := newPath(t)
		execute(t, path, statements)
		tb, err := sqlite.Open(path, sqlite.AsItIs())
		if err == nil {
			closeAll(t, tb)
		}
		if want := "schema version " + version; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want it to contain %q", err, want)
		}
		if got := selectText(t, path, `PRAGMA user_version`); got != version {
			t.Errorf("got version %s afterwards, want %s", got, version)
		}
		closeAll(t, openTable(t, path))
		closeAll(t, openTable(t, path, sqlite.AsItIs()))
	}
}

// wantRewriteTold checks that a log says once that a file of a version is rewritten, with its
// size, and then that it has been rewritten.
func wantRewriteTold(t *testing.T, told []byte, path string, version int) {
	t.Helper()
	var lines []map[string]any
	for decoder := json.NewDecoder(bytes.NewReader(told)); decoder.More(); {
		var line map[string]any
		check.Must(t, decoder.Decode(&line))
		lines = append(lines, line)
	}
	if len(lines) != 2 {
		t.Fatalf("got the log\n%s\nwant a line before and one after", told)
	}
	before, after := lines[0], lines[1]
	size, _ := before["bytes"].(float64)
	_, timed := after["duration"].(float64)
	if before["file"] != path || before["version"] != float64(version) || before["to"] != float64(sqlite.SchemaVersion) || size < 150_000 {
		t.Errorf("before: got %v, want version %d of %s", before, version, path)
	}
	if after["file"] != path || after["items"] != 1.0 || !timed {
		t.Errorf("after: got %v, want how long the one item of %s took", after, path)
	}
}
