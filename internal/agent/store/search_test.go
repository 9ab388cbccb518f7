package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/agent/store"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// gathering is a table that holds each transaction back until several have come.
type gathering struct {
	table.Table

	missing atomic.Int64
	come    chan struct{}
}

func (g *gathering) Transact(ctx context.Context, writes ...table.Write) error {
	if g.missing.Add(-1) == 0 {
		close(g.come)
	}
	select {
	case <-g.come:
		return g.Table.Transact(ctx, writes...)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestASearchRefreshesItemsInParallel checks that the items of a page do not wait for each other.
func TestASearchRefreshesItemsInParallel(t *testing.T) {
	t.Parallel()
	const found = 40
	passing := fixtures.NewClockAt(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 0)
	now := passing.Now
	tb := fixtures.DomainTable(t, now)
	s := store.NewStore(tb, now, quota.Limits{}, slog.Default())
	for i := range found {
		check.Must(t, s.Put(t.Context(), owner, []string{"n"}, fmt.Sprint(i), json.RawMessage(`{}`), 10*time.Minute, store.Vectors{}))
	}
	passing.Pass(6 * time.Minute)
	several := &gathering{Table: tb, come: make(chan struct{})}
	several.missing.Store(8)
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	wanted := store.Wanted{Below: []string{"n"}, Window: record.Window{Limit: found}, Refresh: true}
	_, _, err := store.NewStore(several, now, quota.Limits{}, slog.Default()).Search(ctx, owner, wanted)
	check.Must(t, err)
	passing.Pass(6 * time.Minute)
	_, total, err := s.Search(t.Context(), owner, wanted)
	check.Must(t, err)
	if total != found {
		t.Errorf("%d items live on, want %d", total, found)
	}
}
