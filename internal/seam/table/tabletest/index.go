package tabletest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
)

var indexCases = []testCase{
	{"an index holds only the items that have a key in it", func(f *fixture) {
		for _, index := range []table.Index{table.ByList, table.ByDue} {
			f.put(indexed("with "+string(index), index, key("i", "1")))
		}
		f.put(table.Item{Key: key("p", "without")})
		f.wantIndexed(table.Query{Index: table.ByList, PK: "i"}, "with list")
		f.wantIndexed(table.Query{Index: table.ByDue, PK: "i"}, "with due")
		f.wantIndexed(table.Query{Index: table.ByList, PK: "p"})
	}},
	{"items come back whole from the index list, and as references from the index due", func(f *fixture) {
		stored := sample(key("p", "a"))
		stored.Expires = f.clock.now().Add(time.Hour).Truncate(time.Second)
		f.put(stored)
		for _, index := range []table.Index{table.ByList, table.ByDue} {
			want := seenBy(index, stored)
			f.eventually(func() string {
				items, err := table.AllItems(f.Context(), f, table.Query{Index: index, PK: want.Index[index].PK})
				if err != nil {
					f.Fatal(err)
				}
				return diff(items, []*table.Item{&want})
			})
		}
	}},
	{"a cursor in an index may stand at an item of another partition", func(f *fixture) {
		of := map[string][]string{}
		for n := range 6 {
			pk := []string{"i", "j"}[n%2]
			f.put(indexed(numbered(n), table.ByList, key(pk, numbered(n))))
			of[pk] = append(of[pk], numbered(n))
		}
		for pk, all := range of {
			query := table.Query{Index: table.ByList, PK: pk}
			f.wantIndexed(query, all...)
			for n := range 6 {
				at := indexed(numbered(n), table.ByList, key("other", numbered(n)))
				for _, query.Reverse = range []bool{false, true} {
					want := filter(all, func(sk string) bool { return sk != at.Key.SK && (sk < at.Key.SK) == query.Reverse })
					if query.Cursor = query.CursorAfter(query.PositionOf(&at)); query.Reverse {
						want = reversed(want)
					}
					f.wantIndexed(query, want...)
				}
			}
		}
	}},
	{"whatever changes of an item shows in an index that was read before", func(f *fixture) {
		want := sample(key("p", "a"))
		f.put(want, sample(key("p", "b")))
		all := func() string {
			for _, index := range []table.Index{table.ByList, table.ByDue} {
				items, err := table.AllItems(f.Context(), f, table.Query{Index: index, PK: want.Index[index].PK, Limit: 1})
				if err != nil {
					f.Fatal(err)
				}
				if found := slices.IndexFunc(items, func(i *table.Item) bool { return i.Key == want.Key }); found < 0 {
					return "it is not in the index " + string(index)
				} else if seen := seenBy(index, want); diff(items[found], &seen) != "" {
					return diff(items[found], &seen)
				}
			}
			return ""
		}
		f.eventually(all)
		for _, change := range []func(){
			func() { want.Attrs["name"] = "another" },
			func() { want.Attrs["epoch"] = want.Attrs["epoch"].(int64) + 1 },
			func() { want.Body = []byte("another") },
			func() { want.Body = bytes.Repeat([]byte("long "), 1000) },
			func() { want.Body = nil },
			func() { want.Expires = f.clock.now().Add(time.Hour).Truncate(time.Second) },
			func() { want.Index[table.ByDue] = key(want.Index[table.ByDue].PK, "another") },
			func() { want.Index[table.ByList] = key(want.Index[table.ByList].PK, "another") },
		} {
			change()
			f.put(want)
			f.eventually(all)
		}
	}},
	{"the index orders by its own key", func(f *fixture) {
		f.put(indexed("a", table.ByDue, key("i", "3")), indexed("b", table.ByDue, key("i", "1")), indexed("c", table.ByDue, key("i", "2")))
		f.wantIndexed(table.Query{Index: table.ByDue, PK: "i"}, "b", "c", "a")
		f.wantIndexed(table.Query{Index: table.ByDue, PK: "i", Reverse: true}, "a", "c", "b")
		f.wantIndexed(table.Query{Index: table.ByDue, PK: "i", To: "2"}, "b", "c")
	}},
	{"ranges and prefixes of an index are exact to the byte", func(f *fixture) {
		for _, sk := range sortKeys {
			f.put(indexed(sk, table.ByList, key("i", sk)))
		}
		f.wantIndexed(table.Query{Index: table.ByList, PK: "i"}, sortKeys...)
		for _, bound := range sortKeys {
			f.wantIndexed(table.Query{Index: table.ByList, PK: "i", From: bound}, filter(sortKeys, func(sk string) bool { return sk >= bound })...)
			f.wantIndexed(table.Query{Index: table.ByList, PK: "i", To: bound}, filter(sortKeys, func(sk string) bool { return sk <= bound })...)
			f.wantIndexed(table.Query{Index: table.ByList, PK: "i", Prefix: bound}, filter(sortKeys, func(sk string) bool { return strings.HasPrefix(sk, bound) })...)
		}
	}},
	{"an item moves, leaves and comes back with its key", func(f *fixture) {
		query := table.Query{Index: table.ByList, PK: "i"}
		f.put(indexed("a", table.ByList, key("i", "1")), indexed("b", table.ByList, key("i", "2")))
		f.wantIndexed(query, "a", "b")
		move := func(to table.Key) {
			f.write(table.Update{Key: key("p", "a"), Index: map[table.Index]table.Key{table.ByList: to}})
		}
		move(key("i", "3"))
		f.wantIndexed(query, "b", "a")
		move(key("other", "1"))
		f.wantIndexed(query, "b")
		f.wantIndexed(table.Query{Index: table.ByList, PK: "other"}, "a")
		move(table.Key{})
		f.wantIndexed(table.Query{Index: table.ByList, PK: "other"})
		move(key("i", "0"))
		f.wantIndexed(query, "a", "b")
	}},
	{"an item that is replaced without the key, or deleted, leaves the index", func(f *fixture) {
		query := table.Query{Index: table.ByDue, PK: "i"}
		f.put(indexed("a", table.ByDue, key("i", "1")), indexed("b", table.ByDue, key("i", "2")), indexed("c", table.ByDue, key("i", "3")))
		f.put(table.Item{Key: key("p", "a")})
		f.wantIndexed(query, "b", "c")
		f.write(table.Delete{Key: key("p", "b")})
		f.wantIndexed(query, "c")
	}},
	{"an index shows what an update changed elsewhere in the item", func(f *fixture) {
		want := indexed("a", table.ByList, key("i", "1"))
		f.put(want)
		f.write(table.Update{Key: want.Key, Set: table.Attrs{"n": int64(1)}, Body: []byte("new")})
		want.Attrs, want.Body = table.Attrs{"n": int64(1)}, []byte("new")
		f.eventually(func() string {
			items, err := table.AllItems(f.Context(), f, table.Query{Index: table.ByList, PK: "i"})
			if err != nil {
				f.Fatal(err)
			}
			return diff(items, []*table.Item{&want})
		})
	}},
	{"items under one index key keep one order, which pages of every size follow", func(f *fixture) {
		var names []string
		for i := range 9 {
			name := fmt.Sprint(i)
			names = append(names, name)
			f.put(indexed(name, table.ByList, key("i", "same")))
		}
		query := table.Query{Index: table.ByList, PK: "i"}
		f.eventually(func() string { return diff(len(f.indexed(query)), len(names)) })
		order := f.indexed(query)
		f.wantEqual(slices.Sorted(slices.Values(order)), names)
		for size := 1; size <= len(names)+1; size++ {
			query.Limit = size
			query.Reverse = false
			f.wantPages(query, order)
			query.Reverse = true
			f.wantPages(query, reversed(order))
		}
	}},
	{"a cursor of an index keeps its place while items come and go", func(f *fixture) {
		for _, n := range []string{"1", "2", "3", "4"} {
			f.put(indexed(n, table.ByDue, key("i", n)))
		}
		query := table.Query{Index: table.ByDue, PK: "i", Limit: 2}
		f.wantIndexed(query, "1", "2", "3", "4")
		page, err := f.Query(f.Context(), query)
		if err != nil {
			f.Fatal(err)
		}
		f.write(table.Delete{Key: key("p", "2")}, table.Delete{Key: key("p", "3")})
		f.put(indexed("25", table.ByDue, key("i", "25")), indexed("15", table.ByDue, key("i", "15")))
		f.wantIndexed(query, "1", "15", "25", "4")
		query.Cursor = page.Cursor
		f.wantIndexed(query, "25", "4")
		query.Index = table.ByList
		if _, err := f.Query(f.Context(), query); err == nil {
			f.Errorf("cursor of another index: got no error, want one")
		}
	}},
	{"a failed transaction leaves the indexes as they were", func(f *fixture) {
		f.put(indexed("a", table.ByList, key("i", "1")))
		f.wantFailed(2, nil,
			table.Put{Item: indexed("b", table.ByList, key("i", "2")), If: table.Absent()},
			table.Update{Key: key("p", "a"), Index: map[table.Index]table.Key{table.ByList: key("i", "3")}},
			table.Check{Key: key("p", "none"), If: table.Present()},
		)
		f.put(indexed("z", table.ByList, key("i", "9")))
		f.wantIndexed(table.Query{Index: table.ByList, PK: "i"}, "a", "z")
		f.wantItem(indexed("a", table.ByList, key("i", "1")))
	}},
}

// seenBy is the form in which a query on an index returns an item.
func seenBy(index table.Index, item table.Item) table.Item {
	if index.Whole() {
		return item
	}
	return table.Item{Key: item.Key, Expires: item.Expires, Index: map[table.Index]table.Key{index: item.Index[index]}}
}

// indexed is an item of partition p with a key in one index.
func indexed(sk string, index table.Index, at table.Key) table.Item {
	return table.Item{Key: key("p", sk), Index: map[table.Index]table.Key{index: at}}
}

func (f *fixture) indexed(query table.Query) []string {
	f.Helper()
	items, err := table.AllItems(f.Context(), f, query)
	if err != nil {
		f.Fatalf("query %+v: %v", query, err)
	}
	return sortKeysOf(items)
}

// wantIndexed waits until a query on an index, which may lag behind, returns the items with
// these sort keys of their own.
func (f *fixture) wantIndexed(query table.Query, want ...string) {
	f.Helper()
	f.eventually(func() string { return diff(f.indexed(query), want) })
}

func filter(texts []string, keep func(string) bool) []string {
	var kept []string
	for _, text := range texts {
		if keep(text) {
			kept = append(kept, text)
		}
	}
	return kept
}
