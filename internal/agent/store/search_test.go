package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
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

// asked is a table that counts its queries.
type asked struct {
	table.Table

	queries atomic.Int64
}

func (a *asked) Query(ctx context.Context, query table.Query) (table.Page, error) {
	a.queries.Add(1)
	return a.Table.Query(ctx, query)
}

// TestAListOfNamespacesLooksAtFew checks that a list does not look at each namespace whose items
// may expire, if it shows many of them as the same one, or begins behind them. Namespaces that have
// expired are neither shown nor in the way.
func TestAListOfNamespacesLooksAtFew(t *testing.T) {
	t.Parallel()
	passing := fixtures.NewClockAt(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 0)
	now := passing.Now
	tb := &asked{Table: fixtures.DomainTable(t, now)}
	s := store.NewStore(tb, now, quota.Limits{}, slog.Default())
	put := func(ttl time.Duration, namespace ...string) {
		t.Helper()
		check.Must(t, s.Put(t.Context(), owner, namespace, "k", json.RawMessage(`{}`), ttl, store.Vectors{}))
	}
	const each = 50
	for i := range each {
		for _, label := range []string{"a", "b", "c"} {
			ttl := 10 * time.Minute
			if label == "b" || i < 20 {
				ttl = time.Minute
			}
			put(ttl, label, fmt.Sprintf("%03d", i))
		}
	}
	put(0, "d", "e")
	list := func(what string, wanted store.Namespaces, most int64, want ...string) {
		t.Helper()
		tb.queries.Store(0)
		found, err := s.Namespaces(t.Context(), owner, wanted)
		check.Must(t, err)
		got := []string{}
		for _, namespace := range found {
			got = append(got, fmt.Sprint(namespace))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		if n := tb.queries.Load(); n > most {
			t.Errorf("%s made %d queries, want at most %d", what, n, most)
		}
	}
	shallow := store.Namespaces{MaxDepth: 1, Window: record.Window{Limit: 10}}
	list("a list of first labels", shallow, 55, "[a]", "[b]", "[c]", "[d]")
	behind := store.Namespaces{Window: record.Window{Offset: 3*each - 1, Limit: 10}}
	list("a list behind an offset", behind, 3, "[c 049]", "[d e]")
	passing.Pass(5 * time.Minute)
	list("a list behind namespaces that have expired since", behind, 3, "[c 049]", "[d e]")
	list("a list of first labels after some have expired", shallow, 3*3*each, "[a]", "[c]", "[d]")
	shallow.Offset = 1
	list("the next page of first labels", shallow, 20, "[c]", "[d]")
	passing.Pass(time.Hour)
	list("a list after all have expired", store.Namespaces{Window: record.Window{Limit: 10}}, 3*3*each, "[d e]")
}
