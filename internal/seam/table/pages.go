package table

import (
	"context"
	"iter"
)

// pageBytes bounds the bytes of a page, unless the query has a bound of its own.
const pageBytes = 4 << 20

// Pages reads the pages of queries, one query after the other. It ends with the first error.
func Pages(ctx context.Context, t Table, queries ...Query) iter.Seq2[[]*Item, error] {
	return pages(ctx, t, 1, queries...)
}

// Growing is [Items] for a search that may reject most items: a page may hold four times as many
// items as the page before it, so that a long search needs few requests and a short search reads
// little.
func Growing(ctx context.Context, t Table, query Query) iter.Seq2[*Item, error] {
	return items(pages(ctx, t, 4, query))
}

// pages reads pages. A page of a query may hold growth times as many items as the page before it.
func pages(ctx context.Context, t Table, growth int, queries ...Query) iter.Seq2[[]*Item, error] {
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
				query.Limit = min(query.Limit*growth, MaxLimit)
			}
		}
	}
}

// Items is [Pages] for callers that look at one item at a time.
func Items(ctx context.Context, t Table, queries ...Query) iter.Seq2[*Item, error] {
	return items(Pages(ctx, t, queries...))
}

func items(pages iter.Seq2[[]*Item, error]) iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		for items, err := range pages {
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
