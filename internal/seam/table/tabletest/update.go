package tabletest

import (
	"maps"
	"math"

	"github.com/slipway-run/slipway/internal/seam/table"
)

var updateCases = []testCase{
	{"set replaces and adds attributes and leaves the rest", func(f *fixture) {
		want := sample(key("p", "a"))
		f.put(want)
		f.write(table.Update{Key: want.Key, Set: table.Attrs{"name": "south", "new": int64(1), "open": "now text"}})
		maps.Copy(want.Attrs, table.Attrs{"name": "south", "new": int64(1), "open": "now text"})
		f.wantItem(want)
	}},
	{"unset removes attributes, absent ones too", func(f *fixture) {
		want := sample(key("p", "a"))
		f.put(want)
		f.write(table.Update{Key: want.Key, Unset: []string{"name", "open", "never there"}})
		delete(want.Attrs, "name")
		delete(want.Attrs, "open")
		f.wantItem(want)
	}},
	{"add counts from the integer that is there, or from 0", func(f *fixture) {
		want := sample(key("p", "a"))
		f.put(want)
		f.write(table.Update{Key: want.Key, Add: map[string]int64{"epoch": 5, "new": -3, "zero": 0}})
		maps.Copy(want.Attrs, table.Attrs{"epoch": int64(12), "new": int64(-3), "zero": int64(0)})
		f.wantItem(want)
	}},
	{"add to what is not an integer, or beyond 64 bits, is refused", func(f *fixture) {
		want := table.Item{Key: key("p", "a"), Attrs: table.Attrs{"text": "1", "bool": true, "max": int64(math.MaxInt64), "min": int64(math.MinInt64)}}
		f.put(want)
		for name, n := range map[string]int64{"text": 1, "bool": 1, "max": 1, "min": -1} {
			f.wantRefused(
				table.Put{Item: table.Item{Key: key("p", "other")}},
				table.Update{Key: want.Key, Set: table.Attrs{"touched": true}, Add: map[string]int64{name: n}},
			)
		}
		f.wantItem(want)
		f.wantAbsent(key("p", "other"))
	}},
	{"a body is replaced when it is not nil", func(f *fixture) {
		want := sample(key("p", "a"))
		f.put(want)
		f.write(table.Update{Key: want.Key, Set: table.Attrs{"name": "same body"}})
		want.Attrs["name"] = "same body"
		f.wantItem(want)
		f.write(table.Update{Key: want.Key, Body: []byte("other")})
		want.Body = []byte("other")
		f.wantItem(want)
		f.write(table.Update{Key: want.Key, Body: []byte{}})
		want.Body = nil
		f.wantItem(want)
	}},
	{"an index key is set, moved and removed, and the other index stays", func(f *fixture) {
		want := table.Item{Key: key("p", "a"), Index: map[table.Index]table.Key{table.ByDue: key("due", "d")}}
		f.put(want)
		for _, k := range []table.Key{key("list", "l1"), key("list", "l2"), key("other", "l2")} {
			f.write(table.Update{Key: want.Key, Index: map[table.Index]table.Key{table.ByList: k}})
			want.Index[table.ByList] = k
			f.wantItem(want)
		}
		f.write(table.Update{Key: want.Key, Index: map[table.Index]table.Key{table.ByList: {}}})
		delete(want.Index, table.ByList)
		f.wantItem(want)
		f.write(table.Update{Key: want.Key, Index: map[table.Index]table.Key{table.ByList: {}}})
		f.wantItem(want)
	}},
	{"everything may change at once", func(f *fixture) {
		f.put(sample(key("p", "a")))
		f.write(table.Update{
			Key: key("p", "a"), Set: table.Attrs{"name": "south"}, Unset: []string{"open", "closed", "empty", "zero"},
			Add: map[string]int64{"epoch": 1}, Body: []byte("new"),
			Index: map[table.Index]table.Key{table.ByDue: {}, table.ByList: key("list", "l9")},
		})
		f.wantItem(table.Item{
			Key: key("p", "a"), Attrs: table.Attrs{"name": "south", "epoch": int64(8)}, Body: []byte("new"),
			Index: map[table.Index]table.Key{table.ByList: key("list", "l9")},
		})
	}},
	{"an update that names nothing changes nothing", func(f *fixture) {
		f.put(sample(key("p", "a")))
		f.write(table.Update{Key: key("p", "a")})
		f.wantItem(sample(key("p", "a")))
	}},
	{"an absent item fails the condition and is not made", func(f *fixture) {
		f.wantFailed(0, nil, table.Update{Key: key("p", "a"), Set: table.Attrs{"n": int64(1)}})
		f.wantFailed(0, nil, table.Update{Key: key("p", "a"), Set: table.Attrs{"n": int64(1)}, If: table.Absent()})
		f.wantAbsent(key("p", "a"))
	}},
	{"its own condition counts as well", func(f *fixture) {
		item := sample(key("p", "a"))
		f.put(item)
		f.wantFailed(0, &item, table.Update{Key: item.Key, Set: table.Attrs{"name": "x"}, If: table.Equals("epoch", int64(8))})
		f.wantItem(item)
		f.write(table.Update{Key: item.Key, Set: table.Attrs{"name": "x"}, If: table.Equals("epoch", int64(7))})
		item.Attrs["name"] = "x"
		f.wantItem(item)
	}},
}
