package tabletest

import "github.com/slipway-run/slipway/internal/seam/table"

var putCases = []testCase{
	{"a put replaces all of what stood there", func(f *fixture) {
		f.put(sample(key("p", "a")))
		next := table.Item{Key: key("p", "a"), Attrs: table.Attrs{"other": "x"}}
		f.put(next)
		f.wantItem(next)
	}},
	{"a put leaves its neighbours alone", func(f *fixture) {
		f.put(sample(key("p", "a")), sample(key("p", "b")), sample(key("q", "a")))
		f.put(table.Item{Key: key("p", "a")})
		f.wantItem(sample(key("p", "b")))
		f.wantItem(sample(key("q", "a")))
	}},
	{"a put does not keep the caller's memory", func(f *fixture) {
		item := sample(key("p", "a"))
		f.put(item)
		item.Attrs["name"], item.Body[0], item.Index[table.ByList] = "changed", 'X', key("changed", "x")
		f.wantItem(sample(key("p", "a")))
	}},
}
