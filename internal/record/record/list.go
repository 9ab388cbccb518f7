package record

import (
	"context"
	"fmt"
	"iter"

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

// MostMisses is the largest number of items rejected by decode that one request reads. The lists
// of a workspace are short, so they have no index by the members that a client may filter by: such
// an index would cost each write of an item another write. A request that meets more rejected items
// gets a short page, whose cursor continues the list.
const MostMisses = 5000

// Source returns the items of a query, which continue after its cursor.
type Source func(ctx context.Context, query table.Query) iter.Seq2[*table.Item, error]

// List returns a window of a query's matches. decode reads an item and reports whether it matches.
// what names the items in errors of the query.
func List[T any](
	ctx context.Context, t table.Table, what string, query table.Query, window Window, decode func(*table.Item) (value T, match bool, err error),
) (Page[T], error) {
	from := func(ctx context.Context, query table.Query) iter.Seq2[*table.Item, error] {
		return table.Growing(ctx, t, query)
	}
	return ListFrom(ctx, from, what, query, window, decode)
}

// ListFrom is List for items that do not come from the query itself.
func ListFrom[T any](
	ctx context.Context, from Source, what string, query table.Query, window Window, decode func(*table.Item) (value T, match bool, err error),
) (Page[T], error) {
	query.Cursor = window.Cursor
	if _, err := query.Place(); err != nil {
		return Page[T]{}, fault.Cursor()
	}
	skip, misses, page := window.Offset, 0, Page[T]{Items: make([]T, 0, window.Limit)}
	if window.Cursor != "" {
		skip = 0
	}
	query.Limit = min(skip+window.Limit+1, table.MaxLimit) // one more shows whether there is a next page
	var last *table.Item
	for item, err := range from(ctx, query) {
		if err != nil {
			return Page[T]{}, fmt.Errorf("list %s: %w", what, err)
		}
		if misses == MostMisses {
			page.Cursor = query.CursorAfter(query.PlaceOf(last))
			break
		}
		value, match, err := decode(item)
		if err != nil {
			return Page[T]{}, err
		}
		switch {
		case !match:
			misses++
		case skip > 0:
			skip--
		case len(page.Items) == window.Limit:
			page.Cursor = query.CursorAfter(query.PlaceOf(last))
			return page, nil
		default:
			page.Items = append(page.Items, value)
		}
		last = item
	}
	return page, nil
}
