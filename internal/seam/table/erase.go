package table

import (
	"context"
	"fmt"
)

// Erase deletes the items of a query for which goes is true, all when goes is nil, a transaction
// per page. What is written meanwhile may stay; who is cut short finds the rest again.
func Erase(ctx context.Context, t Table, query Query, goes func(*Item) bool) error {
	query.Limit = MaxWrites
	for {
		page, err := t.Query(ctx, query)
		if err != nil {
			return fmt.Errorf("query items to erase: %w", err)
		}
		var writes []Write
		for _, item := range page.Items {
			if goes == nil || goes(item) {
				writes = append(writes, Delete{Key: item.Key})
			}
		}
		if len(writes) > 0 {
			if err := t.Transact(ctx, writes...); err != nil {
				return fmt.Errorf("erase items: %w", err)
			}
		}
		if query.Cursor = page.Cursor; page.Cursor == "" {
			return nil
		}
	}
}
