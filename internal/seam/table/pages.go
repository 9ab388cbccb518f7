package table

import (
	"context"
	"iter"
)

// pageBytes bounds the bytes of a page, unless the query has a bound of its own.
const pageBytes = 4 << 20

// Pages reads the pages of queries, one query after the other. It ends with the first error.
func Pages(ctx context.Context, t Table, queries ...Query) iter.Seq2[[]*Item, error] {
	return func(yield func([]*Item, error) bool) {
		for _, query := range queries {
			if query.Bytes == 0 {
				query.Bytes = pageBytes
			}
			for {
				page, err := t.Query(ctx, query)
				if err != nil {
					yield(nil, err)
					return
				}
				if !yield(page.Items, nil) {
					return
				}
				if query.Cursor = page.Cursor; page.Cursor == "" {
					break
				}
			}
		}
	}
}

// Items is [Pages] for callers that look at one item at a time.
func Items(ctx context.Context, t Table, queries ...Query) iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		for items, err := range Pages(ctx, t, queries...) {
			if err != nil {
				yield(nil, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// AllItems returns the items of a query whose answer is known to be small.
func AllItems(ctx context.Context, t Table, query Query) ([]*Item, error) {
	var all []*Item
	for items, err := range Pages(ctx, t, query) {
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
	}
	return all, nil
}
