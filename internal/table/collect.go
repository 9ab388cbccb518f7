package table

import "context"

// Window is the part of a list that a client asks for.
type Window struct {
	// Offset is how many matches are left out, Limit how many are returned at most.
	Offset, Limit int
}

// Collect pages through a query and returns the window of its matches. decode reads an item and says whether it matches.
func Collect[T any](ctx context.Context, t Table, query Query, window Window, decode func(*Item) (value T, match bool, err error)) ([]T, error) {
	found, skip := []T{}, window.Offset
	query.Limit = min(window.Offset+window.Limit, MaxLimit)
	for {
		page, err := t.Query(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			value, match, err := decode(item)
			if err != nil {
				return nil, err
			}
			if !match {
				continue
			}
			if skip > 0 {
				skip--
				continue
			}
			if found = append(found, value); len(found) == window.Limit {
				return found, nil
			}
		}
		if page.Cursor == "" {
			return found, nil
		}
		query.Cursor = page.Cursor
	}
}
