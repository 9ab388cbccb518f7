package tabletest

import (
	"fmt"
	"slices"

	"github.com/slipway-run/slipway/internal/seam/table"
)

var pageCases = []testCase{
	{"pages of every size cover the answer exactly, in both directions", func(f *fixture) {
		f.putSortKeys("p")
		for size := 1; size <= len(sortKeys)+1; size++ {
			f.wantPages(table.Query{PK: "p", Limit: size}, sortKeys)
			f.wantPages(table.Query{PK: "p", Limit: size, Reverse: true}, reversed(sortKeys))
			f.wantPages(table.Query{PK: "p", Limit: size, Prefix: "世"}, []string{"世", "世界", "世界/1"})
			f.wantPages(table.Query{PK: "p", Limit: size, From: "a/1", To: "b", Reverse: true}, []string{"b", "ab", "a/2", "a/10", "a/1"})
		}
	}},
	{"a page ends when its bodies hold as much as was asked for", func(f *fixture) {
		for i, size := range []int{10, 10, 3 << 20, 10, 600 << 10, 600 << 10} {
			f.put(table.Item{Key: key("p", numbered(i)), Body: make([]byte, size)})
		}
		query := table.Query{PK: "p", Bytes: 1 << 20}
		query.Cursor = f.wantPage(query, 0, 1, 2)
		query.Cursor = f.wantPage(query, 3, 4, 5)
		if query.Cursor != "" {
			f.Errorf("got cursor %q after the last page, want none", query.Cursor)
		}
		query.Limit = 1
		query.Cursor = f.wantPage(query, 0)
		query.Cursor, query.Limit = f.wantPage(query, 1), 0
		query.Cursor = f.wantPage(query, 2)
		query.Bytes = 1
		f.wantPage(query, 3)
	}},
	{"the size may change from page to page", func(f *fixture) {
		f.putNumbered(10)
		first := f.wantPage(table.Query{PK: "p", Limit: 3}, 0, 1, 2)
		second := f.wantPage(table.Query{PK: "p", Limit: 5, Cursor: first}, 3, 4, 5, 6, 7)
		if last := f.wantPage(table.Query{PK: "p", Cursor: second}, 8, 9); last != "" {
			f.Errorf("got cursor %q after the last page, want none", last)
		}
	}},
	{"a cursor may be used again", func(f *fixture) {
		f.putNumbered(6)
		cursor := f.wantPage(table.Query{PK: "p", Limit: 2}, 0, 1)
		for range 3 {
			f.wantPage(table.Query{PK: "p", Limit: 2, Cursor: cursor}, 2, 3)
		}
	}},
	{"a cursor keeps its place while items come and go", func(f *fixture) {
		for _, n := range []int{10, 20, 30, 40, 50} {
			f.put(table.Item{Key: key("p", numbered(n))})
		}
		forward := f.wantPage(table.Query{PK: "p", Limit: 3}, 10, 20, 30)
		reverse := f.wantPage(table.Query{PK: "p", Limit: 3, Reverse: true}, 50, 40, 30)
		for _, n := range []int{10, 30, 50} {
			f.write(table.Delete{Key: key("p", numbered(n))})
		}
		for _, n := range []int{5, 25, 35, 55} {
			f.put(table.Item{Key: key("p", numbered(n))})
		}
		f.wantPage(table.Query{PK: "p", Limit: 3, Cursor: forward}, 35, 40, 55)
		f.wantPage(table.Query{PK: "p", Limit: 3, Cursor: reverse, Reverse: true}, 25, 20, 5)
	}},
	{"a cursor of another query, or of none, is refused", func(f *fixture) {
		f.putNumbered(6)
		cursor := f.wantPage(table.Query{PK: "p", Limit: 2}, 0, 1)
		for _, q := range []table.Query{
			{PK: "q", Cursor: cursor},
			{PK: "p", Reverse: true, Cursor: cursor},
			{PK: "p", Index: table.ByList, Cursor: cursor},
			{PK: "p", From: numbered(1), Cursor: cursor},
			{PK: "p", To: numbered(5), Cursor: cursor},
			{PK: "p", Prefix: "0", Cursor: cursor},
			{PK: "p", Cursor: "nonsense"},
			{PK: "p", Cursor: "not base64: ü"},
			{PK: "p", Cursor: numbered(1)},
			{PK: "p", Cursor: cursor[:len(cursor)-1]},
			{PK: "p", Cursor: cursor + "AA"},
			{PK: "p", Cursor: "A" + cursor[1:]},
		} {
			if page, err := f.Query(f.Context(), q); err == nil {
				f.Errorf("query %+v: got %d items, want an error", q, len(page.Items))
			}
		}
	}},
}

func numbered(n int) string { return fmt.Sprintf("%06d", n) }

func reversed(texts []string) []string {
	texts = slices.Clone(texts)
	slices.Reverse(texts)
	return texts
}

// putNumbered puts the items 0 to n-1 into partition p.
func (f *fixture) putNumbered(n int) {
	f.Helper()
	for i := range n {
		f.put(table.Item{Key: key("p", numbered(i))})
	}
}

// wantPage checks one page of numbered items and returns its cursor.
func (f *fixture) wantPage(query table.Query, want ...int) string {
	f.Helper()
	page, err := f.Query(f.Context(), query)
	if err != nil {
		f.Fatalf("query %+v: %v", query, err)
	}
	var texts []string
	for _, n := range want {
		texts = append(texts, numbered(n))
	}
	f.wantEqual(sortKeysOf(page.Items), texts)
	return page.Cursor
}

// wantPages checks that all pages except the last are full, that only the last has no cursor,
// and that together they are want.
func (f *fixture) wantPages(query table.Query, want []string) {
	f.Helper()
	for {
		page, err := f.Query(f.Context(), query)
		if err != nil {
			f.Fatalf("query %+v: %v", query, err)
		}
		size := min(query.Limit, len(want))
		if diff := diff(sortKeysOf(page.Items), want[:size]); diff != "" {
			f.Fatalf("query %+v: got(+) differs from want(-):\n%s", query, diff)
		}
		want = want[size:]
		if more := page.Cursor != ""; more != (len(want) > 0) {
			f.Fatalf("query %+v: got a cursor: %v, want %v", query, more, len(want) > 0)
		}
		if len(want) == 0 {
			return
		}
		query.Cursor = page.Cursor
	}
}
