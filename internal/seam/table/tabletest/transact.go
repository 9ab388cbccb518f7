package tabletest

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/seam/table"
)

var transactCases = []testCase{
	{"all writes of all kinds are applied", func(f *fixture) {
		f.put(sample(key("p", "update")), sample(key("p", "delete")), sample(key("p", "check")))
		f.write(
			table.Put{Item: sample(key("q", "put")), If: table.Absent()},
			table.Update{Key: key("p", "update"), Set: table.Attrs{"name": "south"}},
			table.Delete{Key: key("p", "delete"), If: table.Present()},
			table.Check{Key: key("p", "check"), If: table.Equals("name", "north")},
		)
		f.wantItem(sample(key("q", "put")))
		f.wantAbsent(key("p", "delete"))
		updated := sample(key("p", "update"))
		updated.Attrs["name"] = "south"
		f.wantItem(updated)
	}},
	{"one failed condition, wherever it stands, leaves nothing written", func(f *fixture) {
		stood := sample(key("p", "stood"))
		f.put(stood)
		writes := []table.Write{
			table.Put{Item: sample(key("p", "fresh")), If: table.Absent()},
			table.Put{Item: table.Item{Key: key("p", "blind")}},
			table.Update{Key: stood.Key, Set: table.Attrs{"name": "changed"}, Index: map[table.Index]table.Key{table.ByList: {}}},
			table.Put{Item: sample(key("p", "fresh too")), If: table.Absent()},
		}
		for i := range len(writes) + 1 {
			failing := table.Check{Key: key("p", "nothing"), If: table.Present()}
			with := append(append(append([]table.Write{}, writes[:i]...), failing), writes[i:]...)
			f.wantFailed(i, nil, with...)
			f.wantItem(stood)
			f.wantAbsent(key("p", "fresh"), key("p", "blind"), key("p", "fresh too"))
		}
	}},
	{"a put that finds something leaves nothing written", func(f *fixture) {
		stood := sample(key("p", "stood"))
		f.put(stood)
		f.wantFailed(2, &stood,
			table.Put{Item: sample(key("p", "fresh")), If: table.Absent()},
			table.Put{Item: sample(key("p", "blind"))},
			table.Put{Item: sample(stood.Key), If: table.Absent()},
			table.Put{Item: sample(key("p", "fresh too")), If: table.Absent()},
			table.Delete{Key: key("p", "none")},
		)
		f.wantItem(stood)
		f.wantAbsent(key("p", "fresh"), key("p", "blind"), key("p", "fresh too"))
	}},
	{"the first failing write is named and hands back its item with the body", func(f *fixture) {
		a, b := sample(key("p", "a")), sample(key("p", "b"))
		f.put(a, b)
		fresh := table.Put{Item: sample(key("p", "fresh")), If: table.Absent()}
		putA := table.Put{Item: table.Item{Key: a.Key}, If: table.Absent()}
		casB := table.Update{Key: b.Key, If: table.Equals("epoch", int64(1))}
		missing := table.Check{Key: key("p", "none"), If: table.Present()}
		f.wantFailed(1, &a, fresh, putA, casB, missing)
		f.wantFailed(0, &b, casB, fresh, putA, missing)
		f.wantFailed(0, nil, missing, casB, putA, fresh)
		f.wantFailed(2, &a, fresh, table.Check{Key: b.Key, If: table.Present()}, putA, missing)
	}},
	{"a transaction may have as many writes as the limit", func(f *fixture) {
		var writes []table.Write
		for i := range table.MaxWrites {
			writes = append(writes, table.Put{Item: table.Item{Key: key("p", fmt.Sprintf("%03d", i))}, If: table.Absent()})
		}
		f.write(writes...)
		page, err := f.Query(f.Context(), table.Query{PK: "p"})
		if err != nil || len(page.Items) != table.MaxWrites {
			f.Errorf("got %d items and error %v, want %d", len(page.Items), err, table.MaxWrites)
		}
	}},
	{"one transaction may write to several partitions", func(f *fixture) {
		f.write(table.Put{Item: sample(key("p", "a"))}, table.Put{Item: sample(key("q", "a"))}, table.Put{Item: sample(key("r", "a"))})
		for _, pk := range []string{"p", "q", "r"} {
			f.wantItem(sample(key(pk, "a")))
		}
	}},
	{"a context that has ended applies nothing", func(f *fixture) {
		ctx, cancel := context.WithCancel(f.Context())
		cancel()
		if err := f.Transact(ctx, table.Put{Item: sample(key("p", "a"))}); !errors.Is(err, context.Canceled) {
			f.Errorf("got error %v, want %v", err, context.Canceled)
		}
		f.wantAbsent(key("p", "a"))
	}},
}
