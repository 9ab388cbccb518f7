package record

import (
	"context"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Window is the part of a list that a client asks for.
type Window struct {
	// Limit is how many items are returned at most. Offset is how many items are left out
	// first.
	Limit, Offset int
	// Cursor continues after the page that it came with. The offset is then ignored. An item
	// that is created or deleted meanwhile moves no page.
	Cursor string
}

// Page is a part of a list.
type Page[T any] struct {
	Items []T
	// Cursor asks for the next page, "" at the end.
	Cursor string
}

// List returns a window of a query's matches. decode reads an item and reports whether it
// matches. key returns the key of a decoded item, by which the query is sorted.
func List[T any](
	ctx context.Context, t table.Table, query table.Query, window Window, decode func(*table.Item) (value T, match bool, err error), key func(T) table.Key,
) (Page[T], error) {
	query.Cursor = window.Cursor
	if _, err := query.Place(); err != nil {
		return Page[T]{}, fault.Cursor()
	}
	wanted := table.Window{Offset: window.Offset, Limit: window.Limit + 1} // one more shows whether there is a next page
	if window.Cursor != "" {
		wanted.Offset = 0
	}
	found, err := table.Collect(ctx, t, query, wanted, decode)
	if err != nil {
		return Page[T]{}, err
	}
	if len(found) <= window.Limit {
		return Page[T]{Items: found}, nil
	}
	found = found[:window.Limit]
	last := key(found[len(found)-1])
	return Page[T]{Items: found, Cursor: query.CursorAfter(table.Place{Sort: last.SK, Key: last})}, nil
}
