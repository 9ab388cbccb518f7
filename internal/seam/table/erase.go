package table

import (
	"context"
	"fmt"
)

// Erase deletes the items of a query for which goes is true (all items when goes is nil), with
// one transaction per page. An item that is written meanwhile may stay. A caller that was cut
// short calls Erase again, and it finds the rest.
func Erase(ctx context.Context, t Table, query Query, goes func(*Item) bool) error {
	query.Limit = MaxWrites
	for items, err := range Pages(WithoutContents(ctx), t, query) {
		if err != nil {
			return fmt.Errorf("query items to erase: %w", err)
		}
		var writes []Write
		for _, item := range items {
			if goes == nil || goes(item) {
				writes = append(writes, Delete{Key: item.Key})
			}
		}
		if len(writes) > 0 {
			if err := t.Transact(ctx, writes...); err != nil {
				return fmt.Errorf("erase items: %w", err)
			}
		}
	}
	return nil
}
