package record

import (
	"context"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
)

const (
	kindCount = "count"
	attrCount = "count"
)

// Count is how many items a collection has. Each creation and deletion changes it in its own
// transaction.
type Count struct {
	Key table.Key
	// Most is how many items there may be, 0 for any number.
	Most int64
}

// Change returns how many items there are, and the write that adds more to the count. The
// caller refuses more than Most items. The write's condition fails when another writer was the
// first to count, or has taken the last places.
func (c Count) Change(ctx context.Context, t table.Table, now time.Time, more int64) (count int64, write table.Write, err error) {
	item, err := Get(ctx, t, "count", c.Key, nil)
	if err != nil {
		return 0, nil, err
	}
	if item != nil {
		condition := table.Present()
		if c.Most > 0 && more > 0 {
			condition = table.Below(attrCount, c.Most-more+1)
		}
		change := Change(c.Key, now, nil, condition)
		change.Add[attrCount] = more
		return item.Int(attrCount), change, nil
	}
	return 0, New(c.Key, kindCount, now, table.Attrs{attrCount: more}, nil), nil
}

// Read returns how many items there are.
func (c Count) Read(ctx context.Context, t table.Table) (int64, error) {
	count, _, err := c.Change(ctx, t, time.Time{}, 0)
	return count, err
}

// Counted returns the number in the item of a count.
func Counted(item *table.Item) int64 { return item.Int(attrCount) }
