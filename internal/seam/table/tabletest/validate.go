package tabletest

import (
	"fmt"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/table"
)

var validateCases = []testCase{
	{"a transaction without writes is refused", func(f *fixture) { f.wantRefused() }},
	{"more writes than the limit are refused", func(f *fixture) {
		var writes []table.Write
		for i := range table.MaxWrites + 1 {
			writes = append(writes, table.Put{Item: table.Item{Key: key("p", fmt.Sprint(i))}})
		}
		f.wantRefused(writes...)
		f.wantAbsent(key("p", "0"))
	}},
	{"two writes to one key are refused, near or far apart", func(f *fixture) {
		writes := []table.Write{table.Put{Item: table.Item{Key: key("p", "twice")}}}
		for i := range 20 {
			f.wantRefused(append(writes, table.Check{Key: key("p", "twice"), If: table.Absent()})...)
			writes = append(writes, table.Put{Item: table.Item{Key: key("p", fmt.Sprint(i))}})
		}
		f.wantAbsent(key("p", "twice"), key("p", "0"))
	}},
	{"a value of another type is refused", func(f *fixture) {
		for _, value := range []any{nil, 1, int32(1), uint64(1), 1.5, []byte("x"), []string{"x"}, map[string]any{}} {
			f.wantRefused(table.Put{Item: table.Item{Key: key("p", "a"), Attrs: table.Attrs{"v": value}}})
			f.wantRefused(table.Update{Key: key("p", "a"), Set: table.Attrs{"v": value}})
			f.wantRefused(table.Check{Key: key("p", "a"), If: table.Equals("v", value)})
		}
		f.wantAbsent(key("p", "a"))
	}},
	{"a body above the limit is refused", func(f *fixture) {
		body := make([]byte, table.MaxBody+1)
		f.wantRefused(table.Put{Item: table.Item{Key: key("p", "a"), Body: body}})
		f.wantRefused(table.Update{Key: key("p", "a"), Body: body})
		f.wantAbsent(key("p", "a"))
	}},
	{"keys and attributes up to their limits are kept, and refused above", func(f *fixture) {
		longest := strings.Repeat("k", table.MaxKey)
		const overhead = len("long") + 8
		item := table.Item{
			Key:   key(longest, longest),
			Attrs: table.Attrs{"long": strings.Repeat("v", table.MaxAttrs-overhead)},
			Body:  largeBody(100_000),
			Index: map[table.Index]table.Key{table.ByList: key(longest, longest), table.ByDue: key(longest, longest)},
		}
		f.put(item)
		f.wantItem(item)
		for _, k := range []table.Key{key(longest+"k", "a"), key("p", longest+"k")} {
			f.wantRefused(table.Put{Item: table.Item{Key: k}})
			f.wantRefused(table.Put{Item: table.Item{Key: key("p", "a"), Index: map[table.Index]table.Key{table.ByList: k}}})
		}
		tooLarge := table.Attrs{"long": strings.Repeat("v", table.MaxAttrs-overhead+1)}
		f.wantRefused(table.Put{Item: table.Item{Key: key("p", "a"), Attrs: tooLarge}})
		f.wantRefused(table.Update{Key: item.Key, Set: tooLarge})
		f.wantAbsent(key("p", "a"))
	}},
	{"text that is not UTF-8 or a key with an empty part is refused", func(f *fixture) {
		for _, k := range []table.Key{key("", "a"), key("p", ""), key("p", "\xff"), key("\xc3", "a")} {
			f.wantRefused(table.Put{Item: table.Item{Key: k}})
			f.wantRefused(table.Update{Key: k})
			f.wantRefused(table.Delete{Key: k})
			f.wantRefused(table.Check{Key: k, If: table.Absent()})
			f.wantRefused(table.Put{Item: table.Item{Key: key("p", "a"), Index: map[table.Index]table.Key{table.ByList: k}}})
			f.wantRefused(table.Update{Key: key("p", "a"), Index: map[table.Index]table.Key{table.ByDue: k}})
		}
		f.wantRefused(table.Put{Item: table.Item{Key: key("p", "a"), Attrs: table.Attrs{"v": "\xff"}}})
		f.wantRefused(table.Put{Item: table.Item{Key: key("p", "a"), Attrs: table.Attrs{"": "v"}}})
		f.wantAbsent(key("p", "a"))
	}},
	{"an unknown index is refused", func(f *fixture) {
		index := map[table.Index]table.Key{"other": key("i", "i")}
		f.wantRefused(table.Put{Item: table.Item{Key: key("p", "a"), Index: index}})
		f.wantRefused(table.Update{Key: key("p", "a"), Index: index})
	}},
	{"an update that says two things about one attribute is refused", func(f *fixture) {
		item := table.Item{Key: key("p", "a"), Attrs: table.Attrs{"n": int64(1)}}
		f.put(item)
		f.wantRefused(table.Update{Key: item.Key, Set: table.Attrs{"n": int64(2)}, Unset: []string{"n"}})
		f.wantRefused(table.Update{Key: item.Key, Set: table.Attrs{"n": int64(2)}, Add: map[string]int64{"n": 1}})
		f.wantRefused(table.Update{Key: item.Key, Unset: []string{"n"}, Add: map[string]int64{"n": 1}})
		f.wantItem(item)
	}},
	{"a check without a condition and a nil write are refused", func(f *fixture) {
		f.wantRefused(table.Check{Key: key("p", "a")})
		f.wantRefused(nil, table.Put{Item: table.Item{Key: key("p", "a")}})
		f.wantAbsent(key("p", "a"))
	}},
	{"a query that cannot be answered is refused", func(f *fixture) {
		for _, q := range []table.Query{
			{}, {PK: "p", Limit: -1}, {PK: "p", Limit: table.MaxLimit + 1}, {PK: "p", Bytes: -1}, {PK: "p", Index: "other"},
			{PK: "p", Prefix: "a", From: "a"}, {PK: "p", Prefix: "a", To: "a"}, {PK: "\xff"}, {PK: "p", Prefix: "\xc3"},
		} {
			if _, err := f.Query(f.Context(), q); err == nil {
				f.Errorf("query %+v: got no error, want one", q)
			}
		}
	}},
}
