package tabletest

import "github.com/slipway-run/slipway/internal/seam/table"

var deleteCases = []testCase{
	{"a deleted item is absent and its neighbours stay", func(f *fixture) {
		f.put(sample(key("p", "a")), sample(key("p", "b")))
		f.write(table.Delete{Key: key("p", "a")})
		f.wantAbsent(key("p", "a"))
		f.wantItem(sample(key("p", "b")))
	}},
	{"an absent item may be deleted without a condition", func(f *fixture) {
		f.write(table.Delete{Key: key("p", "a")})
		f.wantAbsent(key("p", "a"))
	}},
	{"an absent item that must be present fails", func(f *fixture) {
		f.wantFailed(0, nil, table.Delete{Key: key("p", "a"), If: table.Present()})
	}},
	{"an item that fails the condition stays", func(f *fixture) {
		item := sample(key("p", "a"))
		f.put(item)
		f.wantFailed(0, &item, table.Delete{Key: item.Key, If: table.Equals("name", "south")})
		f.wantItem(item)
		f.write(table.Delete{Key: item.Key, If: table.Equals("name", "north")})
		f.wantAbsent(item.Key)
	}},
	{"a deleted item can be made again", func(f *fixture) {
		f.put(sample(key("p", "a")))
		f.write(table.Delete{Key: key("p", "a")})
		f.write(table.Put{Item: table.Item{Key: key("p", "a"), Body: []byte("2")}, If: table.Absent()})
		f.wantItem(table.Item{Key: key("p", "a"), Body: []byte("2")})
	}},
}
