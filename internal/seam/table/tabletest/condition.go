package tabletest

import (
	"errors"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// conditionCases decide each condition on an item that exists and on an item that does not, by
// every kind of write.
var conditionCases = []testCase{
	{"each condition holds as defined on a present and an absent item", func(f *fixture) {
		present := sample(key("p", "there"))
		f.put(present)
		for _, c := range []struct {
			name              string
			cond              table.Cond
			onThere, onAbsent bool
		}{
			{"absent", table.Absent(), false, true},
			{"present", table.Present(), true, false},
			{"equal text", table.Equals("name", "north"), true, false},
			{"other text", table.Equals("name", "south"), false, false},
			{"equal integer", table.Equals("epoch", int64(7)), true, false},
			{"other integer", table.Equals("epoch", int64(8)), false, false},
			{"equal boolean", table.Equals("open", true), true, false},
			{"other boolean", table.Equals("open", false), false, false},
			{"false is not absent", table.Equals("closed", false), true, false},
			{"zero is not absent", table.Equals("zero", int64(0)), true, false},
			{"empty text is not absent", table.Equals("empty", ""), true, false},
			{"missing attribute is not false", table.Equals("missing", false), false, false},
			{"missing attribute is not zero", table.Equals("missing", int64(0)), false, false},
			{"missing attribute is not empty text", table.Equals("missing", ""), false, false},
			{"text is not an integer", table.Equals("epoch", "7"), false, false},
			{"an integer is not text", table.Equals("name", int64(7)), false, false},
			{"a boolean is not an integer", table.Equals("open", int64(1)), false, false},
			{"one of several", table.In("name", "south", "north"), true, false},
			{"one of several of mixed types", table.In("epoch", "7", true, int64(7)), true, false},
			{"none of several", table.In("name", "south", "east"), false, false},
			{"one of none", table.In("name"), false, false},
			{"missing attribute among several", table.In("missing", "", int64(0), false), false, false},
			{"below", table.Below("epoch", 8), true, false},
			{"not below what it equals", table.Below("epoch", 7), false, false},
			{"not below less", table.Below("epoch", -1), false, false},
			{"missing attribute counts as zero", table.Below("missing", 1), true, false},
			{"missing attribute is not below zero", table.Below("missing", 0), false, false},
			{"text is not below", table.Below("name", 100), false, false},
			{"a boolean is not below", table.Below("closed", 100), false, false},
			{"absent or below", table.AbsentOrBelow("epoch", 8), true, true},
			{"absent or not below", table.AbsentOrBelow("epoch", 7), false, true},
			{"absent or a missing attribute", table.AbsentOrBelow("missing", 1), true, true},
			{"absent or text", table.AbsentOrBelow("name", 100), false, true},
			{"all of two", table.All(table.Equals("name", "north"), table.Equals("epoch", int64(7))), true, false},
			{"not all of two", table.All(table.Equals("name", "north"), table.Equals("epoch", int64(8))), false, false},
			{"absent and present", table.All(table.Absent(), table.Present()), false, false},
			{"absent twice", table.All(table.Absent(), table.Absent()), false, true},
			{"all of all", table.All(table.All(table.Present()), table.In("open", true)), true, false},
		} {
			f.wantHolds(c.name, c.cond, present, c.onThere)
			f.wantHolds(c.name+", absent item", c.cond, table.Item{Key: key("p", "not there")}, c.onAbsent)
		}
	}},
	{"no condition always holds", func(f *fixture) {
		f.write(table.Put{Item: sample(key("p", "a")), If: table.All()}, table.Delete{Key: key("p", "b"), If: table.All()})
		f.wantItem(sample(key("p", "a")))
	}},
	{"a check writes nothing", func(f *fixture) {
		f.put(sample(key("p", "a")))
		f.write(table.Check{Key: key("p", "a"), If: table.Present()}, table.Check{Key: key("p", "b"), If: table.Absent()})
		f.wantItem(sample(key("p", "a")))
		f.wantAbsent(key("p", "b"))
	}},
}

// wantHolds decides a condition through a Check, a Put and a Delete, and undoes their writes.
func (f *fixture) wantHolds(name string, cond table.Cond, item table.Item, want bool) {
	f.Helper()
	_, err := f.Get(f.Context(), item.Key)
	stood := err == nil
	for kind, write := range map[string]table.Write{
		"check":  table.Check{Key: item.Key, If: cond},
		"put":    table.Put{Item: item, If: cond},
		"delete": table.Delete{Key: item.Key, If: cond},
	} {
		err := f.Transact(f.Context(), write)
		var failed *table.ConditionFailed
		if err != nil && !errors.As(err, &failed) {
			f.Fatalf("%s: %s: %v", name, kind, err)
		}
		if got := err == nil; got != want {
			f.Errorf("%s: %s: got %v, want %v", name, kind, got, want)
		}
		if stood {
			f.put(item)
		} else {
			f.write(table.Delete{Key: item.Key})
		}
	}
}
