package record

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
)

const (
	kindCount = "count"
	attrCount = "count"
)

// Count is how many items a collection has, which each creation and deletion changes in its own transaction. What was made before it was counted is counted when it
// changes first.
type Count struct {
	Key   table.Key
	Items table.Query
}

// Change returns how many items there are, and the write that says that there are so many more. Its condition fails when another one was the first to count.
func (c Count) Change(ctx context.Context, t table.Table, now time.Time, more int64) (there int64, write table.Write, err error) {
	item, err := t.Get(ctx, c.Key)
	if err == nil {
		change := Change(c.Key, now, nil, table.Present())
		change.Add[attrCount] = more
		return item.Int(attrCount), change, nil
	}
	if !errors.Is(err, table.ErrNotFound) {
		return 0, nil, fmt.Errorf("get count: %w", err)
	}
	if err := table.Each(ctx, t, func(*table.Item) error { there++; return nil }, c.Items); err != nil {
		return 0, nil, fmt.Errorf("query items to count: %w", err)
	}
	return there, table.Put{If: table.Absent(), Item: table.Item{Key: c.Key, Attrs: Attrs(kindCount, now, table.Attrs{attrCount: there + more})}}, nil
}
