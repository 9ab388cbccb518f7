package table

import (
	"context"
	"fmt"
	"iter"
)

// Erase deletes the items of a query for which goes is true (all items when goes is nil), page by
// page, and the items of a page in any order. An item that is written meanwhile may stay. A caller
// that was cut short calls Erase again, and it finds the rest.
func Erase(ctx context.Context, t Table, query Query, goes func(*Item) bool) error {
	return drain(erase(ctx, t, query, goes, t.Delete))
}

// Erased is Erase for all items of a query. It yields the items of each page after it has deleted
// them, and its caller may stop there. It yields no empty page.
func Erased(ctx context.Context, t Table, query Query) iter.Seq2[[]*Item, error] {
	return erase(ctx, t, query, nil, t.Delete)
}

// EraseInOrder is Erase for items that readers may see meanwhile: each item is deleted before the
// next item of the query. It waits for each deletion, so it is slower.
func EraseInOrder(ctx context.Context, t Table, query Query, goes func(*Item) bool) error {
	return drain(erase(ctx, t, query, goes, func(ctx context.Context, keys ...Key) error { return t.InOrder(ctx, Deletes(keys)...) }))
}

func drain(pages iter.Seq2[[]*Item, error]) error {
	for _, err := range pages {
		if err != nil {
			return err
		}
	}
	return nil
}

func erase(ctx context.Context, t Table, query Query, goes func(*Item) bool, remove func(context.Context, ...Key) error) iter.Seq2[[]*Item, error] {
	query.Limit = MaxWrites
	return func(yield func([]*Item, error) bool) {
		for items, err := range Pages(WithoutContents(ctx), t, query) {
			if err != nil {
				yield(nil, fmt.Errorf("query items to erase: %w", err))
				return
			}
			var gone []Key
			for _, item := range items {
				if goes == nil || goes(item) {
					gone = append(gone, item.Key)
				}
			}
			if len(gone) == 0 {
				continue
			}
			if err := remove(ctx, gone...); err != nil {
				yield(nil, fmt.Errorf("erase items: %w", err))
				return
			}
			if !yield(items, nil) {
				return
			}
		}
	}
}

// Deletes returns the writes that delete the items under keys.
func Deletes(keys []Key) []Write {
	writes := make([]Write, len(keys))
	for i, key := range keys {
		writes[i] = Delete{Key: key}
	}
	return writes
}
