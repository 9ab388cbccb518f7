package tabletest

import (
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
)

var reopenCases = []testCase{
	{"what was written is there after reopening", func(f *fixture) {
		large := table.Item{Key: key("p", "large"), Body: largeBody(2 << 20)}
		f.put(sample(key("p", "a")), sample(key("p", "deleted")), sample(key("p", "updated")), large)
		f.write(table.Delete{Key: key("p", "deleted")}, table.Update{Key: key("p", "updated"), Add: map[string]int64{"epoch": 1}})
		f.reopen()
		f.wantItem(sample(key("p", "a")))
		f.wantItem(large)
		f.wantAbsent(key("p", "deleted"))
		updated := sample(key("p", "updated"))
		updated.Attrs["epoch"] = int64(8)
		f.wantItem(updated)
		f.eventually(func() string { // under one index key, in an order that is not defined
			return diff(slices.Sorted(slices.Values(f.indexed(table.Query{Index: table.ByList, PK: "list"}))), []string{"a", "updated"})
		})
	}},
	{"a cursor goes on after reopening", func(f *fixture) {
		f.putNumbered(5)
		cursor := f.wantPage(table.Query{PK: "p", Limit: 3}, 0, 1, 2)
		f.reopen()
		f.wantPage(table.Query{PK: "p", Limit: 3, Cursor: cursor}, 3, 4)
	}},
	{"conditions and expiry go on after reopening", func(f *fixture) {
		item := sample(key("p", "a"))
		f.put(item, f.expiring("b", time.Minute))
		f.reopen()
		f.wantFailed(0, &item, table.Put{Item: item, If: table.Absent()})
		f.clock.advance(time.Hour)
		f.wantAbsent(key("p", "b"))
	}},
	{"reopening many times loses nothing", func(f *fixture) {
		counter := key("p", "counter")
		f.put(table.Item{Key: counter})
		for range 5 {
			f.write(table.Update{Key: counter, Add: map[string]int64{"n": 1}})
			f.reopen()
		}
		f.wantItem(table.Item{Key: counter, Attrs: table.Attrs{"n": int64(5)}})
	}},
}
