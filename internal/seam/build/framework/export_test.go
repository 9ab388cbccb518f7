package framework

import "slices"

// RuntimeKeys returns the keys that a runtime does not refuse.
func RuntimeKeys() []string {
	var served []string
	for name, key := range keys {
		if key.built || key.refused == "" && !key.read {
			served = append(served, name)
		}
	}
	slices.Sort(served)
	return served
}

// GraphKeys returns the keys of a graph.
func GraphKeys() []string { return graphKeys }
