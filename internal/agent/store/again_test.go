package store_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/agent/store"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// meddled is a table that calls functions, each before one transaction.
type meddled struct {
	table.Table
	before []func()
}

func (m *meddled) Transact(ctx context.Context, writes ...table.Write) error {
	if len(m.before) > 0 {
		before := m.before[0]
		m.before = m.before[1:]
		before()
	}
	return m.Table.Transact(ctx, writes...)
}

// TestAnItemIsPutAgainMeanwhile has a client delete an item and put it again, with vectors, after
// another request has read it. The new item has the version of the former item.
func TestAnItemIsPutAgainMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request func(ctx context.Context, s *store.Store) error
		// after is how many transactions the request makes before it has read the item.
		after int
		want  string
	}{
		"a read that refreshes": {func(ctx context.Context, s *store.Store) error {
			_, err := s.Get(ctx, owner, []string{"n"}, "k", true)
			return err
		}, 0, `I#n/#k{"v":"new"} V#n/#k N#n/ `},
		"a put without vectors": {func(ctx context.Context, s *store.Store) error {
			return s.Put(ctx, owner, []string{"n"}, "k", json.RawMessage(`{"v":"last"}`), 0, store.Vectors{})
		}, 1, `I#n/#k{"v":"last"} N#n/ `},
		"a deletion": {func(ctx context.Context, s *store.Store) error { return s.Delete(ctx, owner, []string{"n"}, "k") }, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			passing := fixtures.NewClockAt(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), time.Millisecond)
			now := passing.Now // the table reads the clock, too
			tb := &meddled{Table: fixtures.DomainTable(t, now)}
			s, other := store.NewStore(tb, now, quota.Limits{}, slog.Default()), store.NewStore(tb.Table, now, quota.Limits{}, slog.Default())
			put := func(value string, v store.Vectors) {
				check.Must(t, other.Put(t.Context(), owner, []string{"n"}, "k", json.RawMessage(value), time.Hour, v))
			}
			put(`{"v":"old"}`, store.Vectors{})
			passing.Pass(30 * time.Minute)
			for range c.after {
				tb.before = append(tb.before, func() {})
			}
			tb.before = append(tb.before, func() {
				check.Must(t, other.Delete(t.Context(), owner, []string{"n"}, "k"))
				put(`{"v":"new"}`, vectors(t, "s", 1, 1))
			})
			check.Must(t, c.request(t.Context(), s))
			if len(tb.before) > 0 {
				t.Fatal("the item was not put again meanwhile")
			}
			left := ""
			for _, item := range stored(t, tb, "n") {
				if left += item.Key.SK; item.Key.SK[0] == 'I' {
					left += string(item.Body)
				}
				left += " "
			}
			if left != c.want {
				t.Errorf("got %s, want %s", left, c.want)
			}
		})
	}
}
