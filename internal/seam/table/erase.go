package table

import (
	"context"
	"fmt"
)

// Erase deletes the items of a query for which goes is true (all items when goes is nil), page by
// page, and the items of a page in any order. An item that is written meanwhile may stay. A caller
// that was cut short calls Erase again, and it finds the rest.
func Erase(ctx context.Context, t Table, query Query, goes func(*Item) bool) error {
	return erase(ctx, t, query, goes, t.Delete)
}

// EraseInOrder is Erase for items that readers may see meanwhile: each item is deleted before the
// next item of the query. It waits for each deletion, so it is slower.
func EraseInOrder(ctx context.Context, t Table, query Query, goes func(*Item) bool) error {
	return erase(ctx, t, query, goes, func(ctx context.Context, keys ...Key) error { return t.InOrder(ctx, Deletes(keys)...) })
}

func erase(ctx context.Context, t Table, query Query, goes func(*Item) bool, remove func(context.Context, ...Key) error) error {
	query.Limit = MaxWrites
	for items, err := range Pages(WithoutContents(ctx), t, query) {
		if err != nil {
			return fmt.Errorf("query items to erase: %w", err)
		}
		var gone []Key
		for _, item := range items {
			if goes == nil || goes(item) {
				gone = append(gone, item.Key)
			}
		}
		if len(gone) > 0 {
			if err := remove(ctx, gone...); err != nil {
				return fmt.Errorf("erase items: %w", err)
			}
		}
	}
	return nil
}

// Deletes returns the writes that delete the items under keys.
func Deletes(keys []Key) []Write {
	writes := make([]Write, len(keys))
	for i, key := range keys {
		writes[i] = Delete{Key: key}
	}
	return writes
}
