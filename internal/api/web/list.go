package web

// ShowAll converts values of the domain to the shape of the interface. No values become an empty
// list.
func ShowAll[D, S any](values []D, show func(D) S) []S {
	shown := make([]S, len(values))
	for i, value := range values {
		shown[i] = show(value)
	}
	return shown
}
