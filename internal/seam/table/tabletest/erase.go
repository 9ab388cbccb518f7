package tabletest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/table"
)

var eraseCases = []testCase{
	{"the items are absent and their neighbours stay", func(f *fixture) {
		f.put(sample(key("p", "a")), sample(key("p", "b")), sample(key("p", "c")), sample(key("q", "a")))
		f.erase(key("p", "a"), key("p", "c"), key("q", "a"), key("q", "none"))
		f.wantAbsent(key("p", "a"), key("p", "c"), key("q", "a"), key("q", "none"))
		f.wantItem(sample(key("p", "b")))
	}},
	{"an erased item leaves its indexes", func(f *fixture) {
		f.put(sample(key("p", "a")))
		f.erase(key("p", "a"))
		f.eventually(func() string {
			page, err := f.Query(f.Context(), table.Query{Index: table.ByList, PK: "list"})
			if err != nil {
				f.Fatal(err)
			}
			return diff(page.Items, []*table.Item(nil))
		})
	}},
	{"as many items as a transaction holds, with bodies of any size", func(f *fixture) {
		var writes []table.Write
		var gone []table.Key
		for i := range table.MaxWrites {
			item := table.Item{Key: key("p", fmt.Sprint(i)), Body: []byte(strings.Repeat("b", i%3*20_000))}
			writes, gone = append(writes, table.Put{Item: item}), append(gone, item.Key)
		}
		f.write(writes...)
		f.erase(gone...)
		page, err := f.Query(f.Context(), table.Query{PK: "p"})
		if err != nil || len(page.Items) > 0 {
			f.Errorf("got %d items and error %v, want none", len(page.Items), err)
		}
		f.erase(gone...)
	}},
	{"an erased item can be made again", func(f *fixture) {
		for _, size := range []int{10, 1 << 20} {
			item := table.Item{Key: key("p", "a"), Body: []byte(strings.Repeat("b", size))}
			f.write(table.Put{Item: item, If: table.Absent()})
			f.wantItem(item)
			f.erase(item.Key)
			f.wantAbsent(item.Key)
		}
	}},
	{"watchers of every erased item are woken", func(f *fixture) {
		large := table.Item{Key: key("p", "large"), Body: []byte(strings.Repeat("b", 20_000))}
		f.put(sample(key("p", "a")), large)
		first, second := f.Watch(key("p", "a")), f.Watch(large.Key)
		defer first.Stop()
		defer second.Stop()
		f.erase(key("p", "a"), large.Key)
		f.wantWoken(first)
		f.wantWoken(second)
	}},
	{"unusable keys erase nothing", func(f *fixture) {
		f.put(sample(key("p", "a")))
		many := make([]table.Key, table.MaxWrites+1)
		for i := range many {
			many[i] = key("p", fmt.Sprint("a", i))
		}
		many[0] = key("p", "a")
		for name, keys := range map[string][]table.Key{
			"none": nil, "an empty part": {key("p", "a"), key("p", "")}, "a key twice": {key("p", "a"), key("p", "a")}, "too many": many,
		} {
			if err := f.Delete(f.Context(), keys...); err == nil {
				f.Errorf("%s: it was taken", name)
			}
		}
		f.wantItem(sample(key("p", "a")))
	}},
	{"a context that has ended erases nothing", func(f *fixture) {
		f.put(sample(key("p", "a")))
		ctx, cancel := context.WithCancel(f.Context())
		cancel()
		if err := f.Delete(ctx, key("p", "a")); !errors.Is(err, context.Canceled) {
			f.Errorf("got error %v, want %v", err, context.Canceled)
		}
		f.wantItem(sample(key("p", "a")))
	}},
	{"the chosen items of a query are erased, in order or not", func(f *fixture) {
		for _, erase := range []func(context.Context, table.Table, table.Query, func(*table.Item) bool) error{table.Erase, table.EraseInOrder} {
			var writes []table.Write
			for i := range table.MaxWrites {
				writes = append(writes, table.Put{Item: table.Item{Key: key("p", fmt.Sprint(i)), Attrs: table.Attrs{"goes": i%3 > 0}}})
			}
			f.write(writes...)
			f.put(table.Item{Key: key("p", "x"), Attrs: table.Attrs{"goes": true}, Body: []byte(strings.Repeat("b", 20_000))})
			if err := erase(f.Context(), f.Table, table.Query{PK: "p", Reverse: true}, func(item *table.Item) bool { return item.Bool("goes") }); err != nil {
				f.Fatal(err)
			}
			page, err := f.Query(f.Context(), table.Query{PK: "p"})
			if err != nil || len(page.Items) != table.MaxWrites/3 {
				f.Errorf("got %d items and error %v, want %d items", len(page.Items), err, table.MaxWrites/3)
			}
			f.wantAbsent(key("p", "x"))
		}
	}},
}

// erase deletes items, which must succeed.
func (f *fixture) erase(keys ...table.Key) {
	f.Helper()
	if err := f.Delete(f.Context(), keys...); err != nil {
		f.Fatalf("delete items: %v", err)
	}
}
