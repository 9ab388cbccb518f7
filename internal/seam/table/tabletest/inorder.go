package tabletest

import (
	"context"
	"errors"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// inOrderCases use writes that may be applied twice, as the seam allows.
var inOrderCases = []testCase{
	{"writes of all kinds are applied", func(f *fixture) {
		f.put(sample(key("p", "update")), sample(key("p", "delete")), sample(key("p", "check")))
		f.inOrder(
			table.Put{Item: sample(key("q", "put"))},
			table.Update{Key: key("p", "update"), Set: table.Attrs{"name": "south"}, If: table.Equals("epoch", int64(7))},
			table.Check{Key: key("p", "check"), If: table.Equals("name", "north")},
			table.Delete{Key: key("p", "delete"), If: table.Present()},
		)
		f.wantItem(sample(key("q", "put")))
		f.wantAbsent(key("p", "delete"))
		updated := sample(key("p", "update"))
		updated.Attrs["name"] = "south"
		f.wantItem(updated)
	}},
	{"nothing behind a failed condition is applied", func(f *fixture) {
		stood := sample(key("p", "stood"))
		f.put(stood)
		err := f.InOrder(f.Context(),
			table.Put{Item: sample(key("p", "before"))},
			table.Update{Key: stood.Key, Set: table.Attrs{"name": "changed"}, If: table.Equals("epoch", int64(1))},
			table.Put{Item: sample(key("p", "behind"))},
		)
		f.wantConditionFailed(err, 1, &stood)
		f.wantItem(stood)
		f.wantAbsent(key("p", "behind"))
	}},
	{"a condition fails on no item", func(f *fixture) {
		f.wantConditionFailed(f.InOrder(f.Context(), table.Update{Key: key("p", "none"), Set: table.Attrs{"name": "x"}}), 0, nil)
		f.wantAbsent(key("p", "none"))
	}},
	{"bodies of any size are replaced", func(f *fixture) {
		item := sample(key("p", "a"))
		for _, size := range []int{10, 1 << 20, 20, 2 << 20, 0} {
			item.Body = []byte(strings.Repeat("b", size))
			f.inOrder(table.Put{Item: sample(key("q", "other"))}, table.Put{Item: item})
			f.wantItem(item)
		}
		item.Body = []byte(strings.Repeat("c", 1<<20))
		f.inOrder(table.Update{Key: item.Key, Body: item.Body})
		f.wantItem(item)
		f.wantConditionFailed(f.InOrder(f.Context(), table.Put{Item: sample(item.Key), If: table.Absent()}), 0, &item)
		f.wantItem(item)
	}},
	{"watchers of every written item are woken", func(f *fixture) {
		first, second := f.Watch(key("p", "a")), f.Watch(key("p", "b"))
		defer first.Stop()
		defer second.Stop()
		f.inOrder(table.Put{Item: sample(key("p", "a"))}, table.Put{Item: sample(key("p", "b"))})
		f.wantWoken(first)
		f.wantWoken(second)
	}},
	{"an unusable write applies nothing", func(f *fixture) {
		err := f.InOrder(f.Context(), table.Put{Item: sample(key("p", "a"))}, table.Put{Item: table.Item{Key: key("", "b")}})
		if err == nil {
			f.Error("it was taken")
		}
		f.wantAbsent(key("p", "a"))
	}},
	{"a context that has ended applies nothing", func(f *fixture) {
		ctx, cancel := context.WithCancel(f.Context())
		cancel()
		if err := f.InOrder(ctx, table.Put{Item: sample(key("p", "a"))}); !errors.Is(err, context.Canceled) {
			f.Errorf("got error %v, want %v", err, context.Canceled)
		}
		f.wantAbsent(key("p", "a"))
	}},
}

// inOrder applies writes that must succeed.
func (f *fixture) inOrder(writes ...table.Write) {
	f.Helper()
	if err := f.InOrder(f.Context(), writes...); err != nil {
		f.Fatalf("write in order: %v", err)
	}
}
