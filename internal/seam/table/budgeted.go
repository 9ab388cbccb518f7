package table

import (
	"context"

	"github.com/slipway-run/slipway/internal/base/budget"
)

// The cost of a read in a budget: each byte is read, decoded and encoded again, and each value
// has its place in a list that grows while it is read. A read that is smaller than freeRead is
// not counted.
const (
	readCost  = 3
	valueCost = 90
	freeRead  = 16 << 10
)

// Budgeted returns the table for a process that many readers share: the cost of a read is taken
// from the budget.Hold of its context. Where there is no room, a read lets go of the data that
// it has read, waits, and reads again. So the process holds little data for which it has no
// room, however many readers there are.
func Budgeted(t Table) Table { return budgeted{t} }

type budgeted struct{ Table }

// Get implements Table.
func (b budgeted) Get(ctx context.Context, key Key) (*Item, error) {
	return within(ctx, func() (*Item, error) { return b.Table.Get(ctx, key) }, func(item *Item) int64 { return cost(item) })
}

// GetBatch implements Table.
func (b budgeted) GetBatch(ctx context.Context, keys ...Key) ([]*Item, error) {
	return within(ctx, func() ([]*Item, error) { return b.Table.GetBatch(ctx, keys...) }, func(items []*Item) int64 { return cost(items...) })
}

// Query implements Table.
func (b budgeted) Query(ctx context.Context, query Query) (Page, error) {
	return within(ctx, func() (Page, error) { return b.Table.Query(ctx, query) }, func(page Page) int64 { return cost(page.Items...) })
}

// within makes a read that takes its cost from the Hold of the context.
func within[T any](ctx context.Context, read func() (T, error), costOf func(T) int64) (T, error) {
	hold := budget.HoldOf(ctx)
	var none T
	for taken := int64(0); ; {
		value, err := read()
		if hold == nil {
			return value, err
		}
		if err != nil {
			hold.Give(taken)
			return value, err
		}
		wanted := costOf(value)
		if wanted <= taken || hold.Try(wanted-taken) {
			return value, nil
		}
		if err := hold.Take(ctx, wanted-taken); err != nil {
			hold.Give(taken)
			return none, err
		}
		taken = wanted
	}
}

func cost(items ...*Item) int64 {
	size, values := 0, 0
	for _, item := range items {
		if item == nil {
			continue
		}
		if size += len(item.Body); len(item.Body) > freeRead {
			values += budget.Values(item.Body)
		}
	}
	if size < freeRead {
		return 0
	}
	return int64(size)*readCost + int64(values)*valueCost
}
