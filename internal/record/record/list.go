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
	// NoCursor is for an interface that has no cursor. Its clients take a short page for the last
	// page. So the list reads until the page is full, however many items it rejects, and reads
	// nothing behind the page.
	NoCursor bool
	// Room is how many bytes the bodies of the returned items may hold. Where the bodies are
	// large, fewer items are returned, but at least one. 0 is no bound.
	Room int
}

// PageRoom is how many bytes the bodies of a client's page may hold. The process keeps the
// whole page in memory.
const PageRoom = 8 << 20

// full reports whether a page with this number of items has no room for the next item. size is the
// number of bytes of the bodies with the next item.
func (w Window) full(items, size int) bool {
	return items == w.Limit || w.Room > 0 && items > 0 && size > w.Room
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
		if window.NoCursor {
			return table.Items(ctx, t, query)
		}
		return table.Growing(ctx, t, query)
	}
	return ListFrom(ctx, from, what, query, window, decode)
}

// ListFrom is List for items that do not come from the query itself.
func ListFrom[T any](
	ctx context.Context, from Source, what string, query table.Query, window Window, decode func(*table.Item) (value T, match bool, err error),
) (Page[T], error) {
	query.Cursor = window.Cursor
	if _, err := query.Position(); err != nil {
		return Page[T]{}, fault.Cursor()
	}
	skip, behind, misses, size, page := window.Offset, 1, 0, 0, Page[T]{Items: []T{}}
	if window.Cursor != "" {
		skip = 0
	}
	if window.NoCursor {
		behind = 0
	}
	// The item behind the page shows whether there is a next page.
	query.Limit, query.Bytes = min(skip+window.Limit+behind, table.MaxLimit), window.Room
	var last *table.Item
	for item, err := range from(ctx, query) {
		if err != nil {
			return Page[T]{}, fmt.Errorf("list %s: %w", what, err)
		}
		if misses == MostMisses && !window.NoCursor {
			page.Cursor = query.CursorAfter(query.PositionOf(last))
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
		case window.full(len(page.Items), size+len(item.Body)):
			page.Cursor = query.CursorAfter(query.PositionOf(last))
			return page, nil
		default:
			page.Items, size = append(page.Items, value), size+len(item.Body)
		}
		if last = item; window.NoCursor && len(page.Items) == window.Limit {
			break
		}
	}
	return page, nil
}
