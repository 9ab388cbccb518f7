package tabletest

import (
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// sortKeys are in byte order, with prefixes of one another and characters of one to four bytes.
var sortKeys = []string{
	"\x00", "\x01x", "A", "B", "a", "a\x00", "a/1", "a/10", "a/2", "ab", "b", "z", "z~", "é", "éa", "ê", "世", "世界", "世界/1", "丗", "\uffff", "🚢", "🚢🚢", "\U0010ffff",
}

var queryCases = []testCase{
	{"a query that may lag behind finds each item in the end", func(f *fixture) {
		f.put(sample(key("p", "a")), sample(key("p", "b")))
		f.eventually(func() string {
			page, err := f.Query(f.Context(), table.Query{PK: "p", Eventual: true})
			if err != nil {
				f.Fatal(err)
			}
			a, b := sample(key("p", "a")), sample(key("p", "b"))
			return diff(page.Items, []*table.Item{&a, &b})
		})
	}},
	{"a partition comes in byte order of the sort key", func(f *fixture) {
		f.putSortKeys("p")
		f.putSortKeys("pp")
		f.wantSortKeys(table.Query{PK: "p"}, sortKeys)
	}},
	{"an empty partition is an empty page", func(f *fixture) {
		f.putSortKeys("p")
		f.wantSortKeys(table.Query{PK: "q"}, nil)
	}},
	{"items come back whole", func(f *fixture) {
		a, b := sample(key("p", "a")), table.Item{Key: key("p", "b"), Body: largeBody(100_000)}
		f.put(a, b)
		page, err := f.Query(f.Context(), table.Query{PK: "p"})
		if err != nil {
			f.Fatal(err)
		}
		f.wantEqual(page, table.Page{Items: []*table.Item{&a, &b}})
	}},
	{"from and to are inclusive, in both directions", func(f *fixture) {
		f.putSortKeys("p")
		bounds := append([]string{"", "a/", "a0", "世丗", "~"}, sortKeys...)
		for _, from := range bounds {
			for _, to := range bounds {
				within := func(sk string) bool { return sk >= from && (to == "" || sk <= to) }
				f.wantBothWays(table.Query{PK: "p", From: from, To: to}, within)
			}
		}
	}},
	{"a prefix is exact to the byte, in both directions", func(f *fixture) {
		f.putSortKeys("p")
		for _, prefix := range append([]string{"a/", "世界/", "c", "y", "zz"}, sortKeys...) {
			f.wantBothWays(table.Query{PK: "p", Prefix: prefix}, func(sk string) bool { return strings.HasPrefix(sk, prefix) })
		}
	}},
	{"no limit means the largest page", func(f *fixture) {
		var writes []table.Write
		for i := range table.MaxLimit + 1 {
			writes = append(writes, table.Put{Item: table.Item{Key: key("p", numbered(i))}})
		}
		for chunk := range slices.Chunk(writes, table.MaxWrites) {
			f.write(chunk...)
		}
		page, err := f.Query(f.Context(), table.Query{PK: "p"})
		if err != nil {
			f.Fatal(err)
		}
		if len(page.Items) != table.MaxLimit || page.Cursor == "" {
			f.Errorf("got %d items and cursor %q, want %d and one", len(page.Items), page.Cursor, table.MaxLimit)
		}
		all, err := table.AllItems(f.Context(), f, table.Query{PK: "p"})
		if err != nil || len(all) != table.MaxLimit+1 {
			f.Errorf("got %d items in all and error %v, want %d", len(all), err, table.MaxLimit+1)
		}
	}},
	{"a query sees each transaction that has returned", func(f *fixture) {
		var want []string
		for i := range 50 {
			f.put(table.Item{Key: key("p", numbered(i))})
			want = append(want, numbered(i))
			f.wantSortKeys(table.Query{PK: "p"}, want)
		}
	}},
}

func (f *fixture) putSortKeys(pk string) {
	f.Helper()
	var writes []table.Write
	for _, sk := range sortKeys {
		writes = append(writes, table.Put{Item: table.Item{Key: key(pk, sk)}})
	}
	f.write(writes...)
}

// wantBothWays checks a query over sortKeys, forwards and in reverse.
func (f *fixture) wantBothWays(query table.Query, within func(sk string) bool) {
	f.Helper()
	var want []string
	for _, sk := range sortKeys {
		if within(sk) {
			want = append(want, sk)
		}
	}
	f.wantSortKeys(query, want)
	slices.Reverse(want)
	query.Reverse = true
	f.wantSortKeys(query, want)
}

// wantSortKeys checks the sort keys of a query's whole answer.
func (f *fixture) wantSortKeys(query table.Query, want []string) {
	f.Helper()
	items, err := table.AllItems(f.Context(), f, query)
	if err != nil {
		f.Fatalf("query %+v: %v", query, err)
	}
	if diff := diff(sortKeysOf(items), want); diff != "" {
		f.Errorf("query %+v: got(+) differs from want(-):\n%s", query, diff)
	}
}

func sortKeysOf(items []*table.Item) []string {
	var sks []string
	for _, item := range items {
		sks = append(sks, item.Key.SK)
	}
	return sks
}
