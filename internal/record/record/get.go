package record

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// Get returns the item under the key, and the error missing if there is no item. what names the
// item in other errors.
func Get(ctx context.Context, t table.Table, what string, key table.Key, missing error) (*table.Item, error) {
	item, err := t.Get(ctx, key)
	if errors.Is(err, table.ErrNotFound) {
		return nil, missing
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", what, err)
	}
	return item, nil
}

// One is Get for an item as decode reads it. It returns a zero value if there is neither an item
// nor an error missing.
func One[T any](
	ctx context.Context, t table.Table, what string, key table.Key, missing error, decode func(*table.Item) (T, error),
) (value T, err error) {
	item, err := Get(ctx, t, what, key, missing)
	if err != nil || item == nil {
		return value, err
	}
	return decode(item)
}

// In returns a decoder of items that do not name their parent, such as their workspace.
func In[P, T any](parent P, decode func(P, *table.Item) (T, error)) func(*table.Item) (T, error) {
	return func(item *table.Item) (T, error) { return decode(parent, item) }
}

// First returns the first item of a query, nil if there is no item. what names the items in errors.
func First(ctx context.Context, t table.Table, what string, query table.Query) (*table.Item, error) {
	query.Limit = 1
	page, err := t.Query(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", what, err)
	}
	if len(page.Items) == 0 {
		return nil, nil
	}
	return page.Items[0], nil
}

// All returns all items of a query whose answer is known to be small, as decode reads them. what
// names the items in errors of the query.
func All[T any](ctx context.Context, t table.Table, what string, query table.Query, decode func(*table.Item) (T, error)) ([]T, error) {
	items, err := table.AllItems(ctx, t, query)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", what, err)
	}
	all := make([]T, len(items))
	for i, item := range items {
		if all[i], err = decode(item); err != nil {
			return nil, err
		}
	}
	return all, nil
}
