package idempotency_test

import (
	"context"
	"testing"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// overtaken is a table in which something happens after the first read of an item.
type overtaken struct {
	table.Table

	happen func()
}

func (o *overtaken) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	item, err := o.Table.Get(ctx, key)
	if happen := o.happen; happen != nil {
		o.happen = nil
		happen()
	}
	return item, err
}

// TestATakeOverIsOvertaken lets other requests settle an expired claim, between the read that
// finds the claim expired and the write that takes it over.
func TestATakeOverIsOvertaken(t *testing.T) {
	t.Parallel()
	key := fixtures.Key(t)
	tb := fixtures.Table(t)
	c := fixtures.NewClockAt(setUp(t).clock.Now(), 0)
	f := &fixture{idempotency.NewStore(tb, key, c.Now), tb, c}
	between := &overtaken{Table: tb}
	late := &fixture{idempotency.NewStore(between, key, c.Now), tb, c}

	f.claim(t, request("claimed", "b"))
	slow := f.claim(t, request("answered", "b"))
	c.Pass(idempotency.Lease)
	between.happen = func() { f.claim(t, request("claimed", "b")) }
	late.refuses(t, request("claimed", "b"), fault.Conflict)
	between.happen = func() {
		if err := slow.Keep(t.Context(), answer); err != nil {
			t.Error(err)
		}
	}
	late.replays(t, request("answered", "b"), answer)
}
