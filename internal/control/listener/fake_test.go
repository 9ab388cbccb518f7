package listener_test

import (
	"context"
	"errors"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// tableThat is a table that calls a function before each transaction, or once after a query.
type tableThat struct {
	table.Table
	beforeTransact, afterQuery func()
}

func (t *tableThat) Query(ctx context.Context, query table.Query) (table.Page, error) {
	page, err := t.Table.Query(ctx, query)
	if then := t.afterQuery; then != nil {
		t.afterQuery = nil
		then()
	}
	return page, err
}

func (t *tableThat) Transact(ctx context.Context, writes ...table.Write) error {
	if t.beforeTransact != nil {
		t.beforeTransact()
	}
	return t.Table.Transact(ctx, writes...)
}

func isConditionFailed(err error) bool {
	_, failed := errors.AsType[*table.ConditionFailed](err)
	return failed
}

// counting is a table that counts the calls.
type counting struct {
	table.Table
	gets, batches, queries, transactions int
}

func (c *counting) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	c.gets++
	return c.Table.Get(ctx, key)
}

func (c *counting) GetBatch(ctx context.Context, keys ...table.Key) ([]*table.Item, error) {
	c.batches++
	return c.Table.GetBatch(ctx, keys...)
}

func (c *counting) Query(ctx context.Context, query table.Query) (table.Page, error) {
	c.queries++
	return c.Table.Query(ctx, query)
}

func (c *counting) Transact(ctx context.Context, writes ...table.Write) error {
	c.transactions++
	return c.Table.Transact(ctx, writes...)
}
