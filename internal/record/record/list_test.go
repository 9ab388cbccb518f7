package record_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
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
			after, err := q.Position()
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
		check.Must(t, err)
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

// counted counts the queries of a table, and the items in their answers.
type counted struct {
	table.Table

	queries, items int
}

func (c *counted) Query(ctx context.Context, query table.Query) (table.Page, error) {
	page, err := c.Table.Query(ctx, query)
	c.queries, c.items = c.queries+1, c.items+len(page.Items)
	return page, err
}

// TestAPageEndsWithItsMatches reads every third of 100 items in pages of 10. No page is empty, the
// pages hold each match once, and a page asks for more items at a time when most are rejected.
func TestAPageEndsWithItsMatches(t *testing.T) {
	t.Parallel()
	stored := &counted{Table: fixtures.Table(t)}
	for i := range 100 {
		put := table.Put{Item: table.Item{Key: table.Key{PK: "p", SK: fmt.Sprintf("%02d", i)}, Attrs: table.Attrs{"n": int64(i)}}}
		check.Must(t, stored.Transact(t.Context(), put))
	}
	third := func(item *table.Item) (int64, bool, error) { return item.Int("n"), item.Int("n")%3 == 0, nil }
	var got []int64
	for window := (record.Window{Limit: 10, Offset: 2}); ; {
		stored.queries = 0
		page, err := record.List(t.Context(), stored, "things", table.Query{PK: "p"}, window, third)
		check.Must(t, err)
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

// TestAListWithoutACursor finds its match behind more rejected items than a list with a cursor
// reads, and reads no item behind a full page.
func TestAListWithoutACursor(t *testing.T) {
	t.Parallel()
	read := 0
	from := func(context.Context, table.Query) iter.Seq2[*table.Item, error] {
		return func(yield func(*table.Item, error) bool) {
			for read = 1; yield(&table.Item{Key: table.Key{PK: "p", SK: fmt.Sprint(read)}}, nil); read++ {
			}
		}
	}
	const first = record.MostMisses + 10
	late := func(*table.Item) (int, bool, error) { return read, read >= first, nil }
	page, err := record.ListFrom(t.Context(), from, "things", table.Query{PK: "p"}, record.Window{Limit: 2, Offset: 1, NoCursor: true}, late)
	if err != nil || !slices.Equal(page.Items, []int{first + 1, first + 2}) || read != first+2 {
		t.Errorf("got %v and error %v after %d items, want items %d and %d", page.Items, err, read, first+1, first+2)
	}
}

// TestAPageHasRoom reads bodies of 10 bytes into pages with room for less than one and for two.
func TestAPageHasRoom(t *testing.T) {
	t.Parallel()
	stored := &counted{Table: fixtures.Table(t)}
	for i := range 5 {
		put := table.Put{Item: table.Item{Key: table.Key{PK: "p", SK: fmt.Sprint(i)}, Body: []byte("0123456789")}}
		check.Must(t, stored.Transact(t.Context(), put))
	}
	all := func(item *table.Item) (string, bool, error) { return item.Key.SK, true, nil }
	for _, c := range []struct {
		window record.Window
		want   string
	}{
		{record.Window{Limit: 4, Room: 5}, "0|1|2|3|4"},
		{record.Window{Limit: 4, Room: 29}, "01|23|4"},
		{record.Window{Limit: 4}, "0123|4"},
		{record.Window{Limit: 2, Room: 29}, "01|23|4"},
	} {
		var pages []string
		for window := c.window; len(pages) == 0 || window.Cursor != ""; {
			page, err := record.List(t.Context(), stored, "things", table.Query{PK: "p"}, window, all)
			check.Must(t, err)
			pages, window.Cursor = append(pages, strings.Join(page.Items, "")), page.Cursor
		}
		if got := strings.Join(pages, "|"); got != c.want {
			t.Errorf("%+v: got the pages %s, want %s", c.window, got, c.want)
		}
	}
}

// TestAListWithoutACursorReadsNoMoreItems reads pages of 3 items: each query reads as many.
func TestAListWithoutACursorReadsNoMoreItems(t *testing.T) {
	t.Parallel()
	stored := &counted{Table: fixtures.Table(t)}
	for i := range 12 {
		put := table.Put{Item: table.Item{Key: table.Key{PK: "p", SK: fmt.Sprintf("%02d", i)}}}
		check.Must(t, stored.Transact(t.Context(), put))
	}
	for behind, want := range map[string]int{"": 3, "05": 9} {
		stored.items = 0
		later := func(item *table.Item) (string, bool, error) { return item.Key.SK, item.Key.SK > behind, nil }
		page, err := record.List(t.Context(), stored, "things", table.Query{PK: "p"}, record.Window{Limit: 3, NoCursor: true}, later)
		if err != nil || len(page.Items) != 3 || stored.items != want {
			t.Errorf("behind %q: got %v and error %v from %d items, want 3 of %d", behind, page.Items, err, stored.items, want)
		}
	}
}
