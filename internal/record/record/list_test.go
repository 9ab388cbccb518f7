package record_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestARequestReadsSoMuchInVainOnly searches for an item at the end of a long list: the
// request stops before the item, and the cursor of its page continues from there.
func TestARequestReadsSoMuchInVainOnly(t *testing.T) {
	t.Parallel()
	const n = 2*record.MostMisses + 10
	query := table.Query{Index: table.ByList, PK: "list"}
	read := 0
	from := func(_ context.Context, q table.Query) iter.Seq2[*table.Item, error] {
		return func(yield func(*table.Item, error) bool) {
			after, err := q.Place()
			first := 0
			if err == nil && after != nil {
				_, err = fmt.Sscan(after.Sort, &first)
				first++
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for i := first; i < n; i++ {
				key := table.Key{PK: "p", SK: fmt.Sprint(i)}
				read++
				if !yield(&table.Item{Key: key, Index: map[table.Index]table.Key{table.ByList: {PK: query.PK, SK: key.SK}}}, nil) {
					return
				}
			}
		}
	}
	last := func(item *table.Item) (string, bool, error) { return item.Key.SK, item.Key.SK == fmt.Sprint(n-1), nil }
	window, requests := record.Window{Limit: 2}, 0
	for {
		requests++
		before := read
		page, err := record.ListFrom(t.Context(), from, "things", query, window, last)
		if err != nil {
			t.Fatal(err)
		}
		if read-before > record.MostMisses+1 {
			t.Errorf("request %d read %d items", requests, read-before)
		}
		if window.Cursor = page.Cursor; window.Cursor == "" {
			if len(page.Items) != 1 || requests != 3 {
				t.Errorf("got %v after %d requests, want the last item after 3", page.Items, requests)
			}
			return
		}
		if len(page.Items) != 0 {
			t.Errorf("request %d found %v", requests, page.Items)
		}
	}
}

// counted counts the queries of a table.
type counted struct {
	table.Table

	queries int
}

func (c *counted) Query(ctx context.Context, query table.Query) (table.Page, error) {
	c.queries++
	return c.Table.Query(ctx, query)
}

// TestAPageEndsWithItsMatches reads every third of 100 items in pages of 10. No page is empty, the
// pages hold each match once, and a page asks for more items at a time when most are rejected.
func TestAPageEndsWithItsMatches(t *testing.T) {
	t.Parallel()
	stored := &counted{Table: fixtures.Table(t)}
	for i := range 100 {
		put := table.Put{Item: table.Item{Key: table.Key{PK: "p", SK: fmt.Sprintf("%02d", i)}, Attrs: table.Attrs{"n": int64(i)}}}
		if err := stored.Transact(t.Context(), put); err != nil {
			t.Fatal(err)
		}
	}
	third := func(item *table.Item) (int64, bool, error) { return item.Int("n"), item.Int("n")%3 == 0, nil }
	var got []int64
	for window := (record.Window{Limit: 10, Offset: 2}); ; {
		stored.queries = 0
		page, err := record.List(t.Context(), stored, "things", table.Query{PK: "p"}, window, third)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Items) == 0 || stored.queries > 2 {
			t.Errorf("a page has %d items and took %d queries, want some items and 2 queries at most", len(page.Items), stored.queries)
		}
		got = append(got, page.Items...)
		if window.Cursor = page.Cursor; window.Cursor == "" {
			break
		}
	}
	for i, n := range got {
		if n != int64(3*(i+2)) {
			t.Fatalf("got %v, want every third from 6", got)
		}
	}
	if len(got) != 32 {
		t.Errorf("got %d matches, want 32", len(got))
	}
}

func TestAListNamesWhatCouldNotBeRead(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	all := func(item *table.Item) (string, bool, error) { return item.Key.SK, true, nil }
	_, err := record.List(over, fixtures.Table(t), "things", table.Query{PK: "p"}, record.Window{Limit: 2}, all)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "list things") {
		t.Errorf("got %v from a table that does not answer", err)
	}
}
