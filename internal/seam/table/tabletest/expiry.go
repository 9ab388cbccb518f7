package tabletest

import (
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
)

var expiryCases = []testCase{
	{"an item is there up to the second in which it expires and absent from then on", func(f *fixture) {
		item := f.expiring("a", 10*time.Second)
		f.put(item)
		item.Expires = item.Expires.Truncate(time.Second)
		f.wantItem(item)
		f.clock.advance(item.Expires.Sub(f.clock.now()) - time.Microsecond)
		f.wantItem(item)
		f.clock.advance(time.Microsecond)
		f.wantAbsent(item.Key)
		f.clock.advance(time.Hour)
		f.wantAbsent(item.Key)
	}},
	{"an item that has already expired is never there", func(f *fixture) {
		f.put(f.expiring("a", -time.Hour), table.Item{Key: key("p", "b"), Expires: time.Unix(0, 0)})
		f.wantAbsent(key("p", "a"), key("p", "b"))
	}},
	{"batches and queries leave out what has expired", func(f *fixture) {
		stays := table.Item{Key: key("p", "b"), Index: map[table.Index]table.Key{table.ByList: key("i", "b")}}
		f.put(f.expiring("a", time.Second), stays, f.expiring("c", time.Second))
		f.wantSortKeys(table.Query{PK: "p"}, []string{"a", "b", "c"})
		f.wantIndexed(table.Query{Index: table.ByList, PK: "i"}, "a", "b", "c")
		f.clock.advance(time.Minute)
		f.wantSortKeys(table.Query{PK: "p"}, []string{"b"})
		f.wantSortKeys(table.Query{Index: table.ByList, PK: "i", Reverse: true}, []string{"b"})
		got, err := f.GetBatch(f.Context(), key("p", "a"), key("p", "b"), key("p", "c"))
		if err != nil {
			f.Fatal(err)
		}
		f.wantEqual(got, []*table.Item{nil, &stays, nil})
	}},
	{"expired items do not shorten pages", func(f *fixture) {
		var want []string
		for i := range 20 {
			item := table.Item{Key: key("p", numbered(i))}
			if i%3 == 0 {
				want = append(want, item.Key.SK)
			} else {
				item.Expires = f.clock.now().Add(time.Second)
			}
			f.put(item)
		}
		f.clock.advance(time.Minute)
		f.wantPages(table.Query{PK: "p", Limit: 2}, want)
		f.wantPages(table.Query{PK: "p", Limit: 2, Reverse: true}, reversed(want))
	}},
	{"conditions take an expired item for absent", func(f *fixture) {
		f.put(f.expiring("a", time.Second), f.expiring("b", time.Second), f.expiring("c", time.Second))
		f.clock.advance(time.Minute)
		a := f.expiring("a", time.Hour)
		for _, write := range []table.Write{
			table.Check{Key: a.Key, If: table.Present()},
			table.Update{Key: a.Key, Set: table.Attrs{"n": int64(1)}},
			table.Put{Item: a, If: table.Equals("name", "a")},
			table.Delete{Key: a.Key, If: table.Present()},
		} {
			f.wantFailed(0, nil, write)
		}
		f.write(
			table.Check{Key: key("p", "b"), If: table.Absent()},
			table.Put{Item: a, If: table.Absent()},
			table.Put{Item: table.Item{Key: key("p", "c")}, If: table.All(table.Absent(), table.Absent())},
		)
		a.Expires = a.Expires.Truncate(time.Second)
		f.wantItem(a)
		f.wantItem(table.Item{Key: key("p", "c")})
	}},
	{"a transaction that fails after it replaced an expired item leaves it absent", func(f *fixture) {
		f.put(f.expiring("a", time.Second))
		stood := sample(key("p", "stood"))
		f.put(stood)
		f.clock.advance(time.Minute)
		f.wantFailed(1, &stood,
			table.Put{Item: sample(key("p", "a")), If: table.Absent()},
			table.Put{Item: sample(stood.Key), If: table.Absent()},
		)
		f.wantAbsent(key("p", "a"))
	}},
	{"an update keeps the expiry and a put replaces it", func(f *fixture) {
		f.put(f.expiring("a", time.Minute), f.expiring("b", time.Minute))
		f.write(table.Update{Key: key("p", "a"), Set: table.Attrs{"n": int64(1)}, Body: []byte("x"), Index: map[table.Index]table.Key{table.ByList: {}}})
		f.put(table.Item{Key: key("p", "b")})
		f.clock.advance(time.Hour)
		f.wantAbsent(key("p", "a"))
		f.wantItem(table.Item{Key: key("p", "b")})
	}},
	{"what expired stays absent while others are written", func(f *fixture) {
		f.put(f.expiring("a", time.Second), sample(key("p", "stays")))
		for i := range 20 {
			f.clock.advance(time.Minute)
			f.put(table.Item{Key: key("q", numbered(i))})
		}
		f.wantAbsent(key("p", "a"))
		f.wantItem(sample(key("p", "stays")))
	}},
}

// expiring is an item of partition p that expires at this duration after now.
func (f *fixture) expiring(sk string, after time.Duration) table.Item {
	return table.Item{
		Key:     key("p", sk),
		Attrs:   table.Attrs{"name": sk},
		Index:   map[table.Index]table.Key{table.ByList: key("i", sk)},
		Expires: f.clock.now().Add(after),
	}
}
