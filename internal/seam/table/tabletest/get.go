package tabletest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/table"
)

var getCases = []testCase{
	{"an item comes back as it was put", func(f *fixture) {
		f.put(sample(key("p", "a")))
		f.wantItem(sample(key("p", "a")))
	}},
	{"an item of only a key comes back", func(f *fixture) {
		f.put(table.Item{Key: key("p", "a")})
		f.wantItem(table.Item{Key: key("p", "a")})
	}},
	{"an absent item is ErrNotFound", func(f *fixture) {
		f.put(sample(key("p", "a")))
		f.wantAbsent(key("p", "b"), key("q", "a"), key("p", "A"), key("p", "a "))
	}},
	{"text, integers and booleans are kept apart", func(f *fixture) {
		item := table.Item{Key: key("p", "a"), Attrs: table.Attrs{
			"text one": "1", "one": int64(1), "true": true, "text true": "true",
			"largest": int64(math.MaxInt64), "smallest": int64(math.MinInt64), "minus one": int64(-1),
			"nul": "a\x00b", "long": strings.Repeat("ü", 5000), "世界": "🚢",
		}}
		f.put(item)
		f.wantItem(item)
	}},
	{"a body of several megabytes comes back", func(f *fixture) {
		item := table.Item{Key: key("p", "a"), Attrs: table.Attrs{"n": int64(1)}, Body: largeBody(5 << 20)}
		f.put(item)
		f.wantItem(item)
		f.write(table.Update{Key: item.Key, Add: map[string]int64{"n": 1}})
		item.Attrs["n"] = int64(2)
		f.wantItem(item)
		item.Body = largeBody(3 << 20)
		f.put(item)
		f.wantItem(item)
	}},
	{"parts of keys do not run into one another", func(f *fixture) {
		keys := []table.Key{key("a", "bc"), key("ab", "c"), key("a/b", "c"), key("a", "b/c"), key("a\x00", "b"), key("a", "\x00b")}
		for i, k := range keys {
			f.put(table.Item{Key: k, Attrs: table.Attrs{"n": int64(i)}})
		}
		for i, k := range keys {
			f.wantItem(table.Item{Key: k, Attrs: table.Attrs{"n": int64(i)}})
		}
	}},
	{"a changed answer does not change the table", func(f *fixture) {
		f.put(sample(key("p", "a")))
		got, err := f.Get(f.Context(), key("p", "a"))
		if err != nil {
			f.Fatal(err)
		}
		got.Attrs["name"], got.Body[0] = "changed", 'X'
		f.wantItem(sample(key("p", "a")))
	}},
	{"an empty part of the key is refused", func(f *fixture) {
		for _, k := range []table.Key{key("", "a"), key("p", ""), {}} {
			if _, err := f.Get(f.Context(), k); err == nil || errors.Is(err, table.ErrNotFound) {
				f.Errorf("get %q: got error %v, want one that refuses the key", k, err)
			}
		}
	}},
	{"an ended context is its error", func(f *fixture) {
		f.put(sample(key("p", "a")))
		ctx, cancel := context.WithCancel(f.Context())
		cancel()
		if _, err := f.Get(ctx, key("p", "a")); !errors.Is(err, context.Canceled) {
			f.Errorf("get: got error %v, want %v", err, context.Canceled)
		}
		if _, err := f.GetBatch(ctx, key("p", "a")); !errors.Is(err, context.Canceled) {
			f.Errorf("get batch: got error %v, want %v", err, context.Canceled)
		}
		if _, err := f.Query(ctx, table.Query{PK: "p"}); !errors.Is(err, context.Canceled) {
			f.Errorf("query: got error %v, want %v", err, context.Canceled)
		}
	}},
	{"a batch answers in the order of its keys, nil where there is none", func(f *fixture) {
		a, b := sample(key("p", "a")), table.Item{Key: key("q", "b"), Body: []byte("b")}
		f.put(a, b)
		got, err := f.GetBatch(f.Context(), b.Key, key("p", "none"), a.Key, b.Key)
		if err != nil {
			f.Fatal(err)
		}
		f.wantEqual(got, []*table.Item{&b, nil, &a, &b})
	}},
	{"a batch may have as many keys as a transaction writes, and no more", func(f *fixture) {
		var keys []table.Key
		var want []*table.Item
		for i := range table.MaxWrites {
			item := table.Item{Key: key("p", fmt.Sprint(i))}
			f.put(item)
			keys, want = append(keys, item.Key), append(want, &item)
		}
		got, err := f.GetBatch(f.Context(), keys...)
		if err != nil {
			f.Fatal(err)
		}
		f.wantEqual(got, want)
		if _, err := f.GetBatch(f.Context(), append(keys, key("p", "more"))...); err == nil {
			f.Errorf("batch of %d keys: got no error, want one", len(keys)+1)
		}
	}},
	{"a batch of no keys answers nothing", func(f *fixture) {
		got, err := f.GetBatch(f.Context())
		if err != nil || len(got) != 0 {
			f.Errorf("got %v and error %v, want neither", got, err)
		}
	}},
}

// largeBody makes bytes that differ along the way, so that swapped or lost parts show.
func largeBody(size int) []byte {
	body := make([]byte, size)
	for i := range body {
		body[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return body
}
