package thread

import (
	"maps"
	"slices"
)

// tiers is a map that never changes. It is a list of maps, in which a later map replaces the values
// of an earlier map. Each map is at most half as large as the map before it. So a map with one more
// value costs little, and replaced values are dropped after a short time.
type tiers[K comparable, V any] []map[K]V

// with returns the map with a value in place of the earlier value of its key.
func (t tiers[K, V]) with(key K, value V) tiers[K, V] {
	last := map[K]V{key: value}
	kept := len(t)
	for ; kept > 0 && len(t[kept-1]) < 2*len(last); kept-- {
		merged := maps.Clone(t[kept-1])
		maps.Copy(merged, last)
		last = merged
	}
	return append(slices.Clip(t[:kept]), last)
}

func (t tiers[K, V]) get(key K) (value V, ok bool) {
	for _, tier := range slices.Backward(t) {
		if value, ok = tier[key]; ok {
			return value, true
		}
	}
	return value, false
}

// all returns a map of all values, which the caller may change.
func (t tiers[K, V]) all() map[K]V {
	merged := map[K]V{}
	for _, tier := range t {
		maps.Copy(merged, tier)
	}
	return merged
}
