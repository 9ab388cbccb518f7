package sqlite_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAScanMeetsEveryItemOnce has more items than a page: some have large bodies, items of one
// partition are on two pages, and one item has expired. Each is rewritten while it is scanned.
func TestAScanMeetsEveryItemOnce(t *testing.T) {
	t.Parallel()
	tb := openTable(t, newPath(t))
	const all = table.MaxLimit + 50
	for i := range all {
		item := table.Item{Key: table.Key{PK: fmt.Sprint("p", i/700), SK: fmt.Sprintf("%04d", i)}, Attrs: table.Attrs{"n": int64(i)}}
		if i%500 == 0 {
			item.Body = large("x")
		}
		check.Must(t, tb.Transact(t.Context(), table.Put{Item: item}))
	}
	expired := table.Item{Key: table.Key{PK: "p0", SK: "0000x"}, Expires: time.Now().Add(-time.Hour)}
	check.Must(t, tb.Transact(t.Context(), table.Put{Item: expired}))
	next := int64(0)
	err := tb.Scan(t.Context(), func(item *table.Item) error {
		if item.Int("n") != next || (next%500 == 0) != (len(item.Body) > 0) {
			t.Fatalf("got %v with %d bytes, want number %d", item.Key, len(item.Body), next)
		}
		next++
		return tb.Transact(t.Context(), table.Update{Key: item.Key, Set: table.Attrs{"seen": true}})
	})
	if err != nil || next != all {
		t.Errorf("%d items (%v), want %d", next, err, all)
	}
	enough := errors.New("enough")
	if err := tb.Scan(t.Context(), func(*table.Item) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}
