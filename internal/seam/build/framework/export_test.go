package framework

import "slices"

// RuntimeKeys are those that a runtime does not refuse.
func RuntimeKeys() []string {
	var served []string
	for name, key := range keys {
		if key.refused == "" || key.built {
			served = append(served, name)
		}
	}
	slices.Sort(served)
	return served
}

// GraphKeys are those of a graph.
func GraphKeys() []string { return graphKeys }
