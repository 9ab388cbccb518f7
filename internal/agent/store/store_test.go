package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/agent/store"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/keys"
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

// stored returns everything that the owner has below a first label.
func stored(t *testing.T, tb table.Table, first string) (all []*table.Item) {
	t.Helper()
	for item, err := range table.Items(t.Context(), tb, keys.StorePartition(owner.Workspace, owner.Deployment, first)...) {
		check.Must(t, err)
		all = append(all, item)
	}
	return all
}

// TestAnErasureThatIsCutShort is gone on with until nothing is left, wherever it was cut. The bytes
// of an item are given back once, and not before the item is gone.
func TestAnErasureThatIsCutShort(t *testing.T) {
	t.Parallel()
	tb := &fixtures.Mortal{Table: fixtures.DomainTable(t, clock.System)}
	limits := quota.Limits{}.With(quota.Stored, 1_000_000) // each item is counted
	s, pool := store.NewStore(tb, clock.System, limits, slog.Default()), quota.NewPool(tb, clock.System, limits, slog.Default())
	const items = 110 // each label has two pages of items, and two pages of vectors
	counted := func() int64 {
		used, err := pool.Used(t.Context(), owner.Workspace)
		check.Must(t, err)
		return used[quota.Stored]
	}
	other := store.Owner{Workspace: owner.Workspace, Deployment: "other"}
	check.Must(t, s.Put(t.Context(), other, []string{"a"}, "stays", json.RawMessage(`{}`), 0, vectors(t, "s", 2, 1, 2)))
	stays := counted()
	for _, label := range []string{"a", "b"} {
		for i := range items {
			check.Must(t, s.Put(t.Context(), owner, []string{label}, fmt.Sprint(i), json.RawMessage(`{}`), 0, vectors(t, "s", 2, 1, 2)))
		}
	}

	all := counted()
	tb.Dead.Store(true)
	if _, err := s.Erase(t.Context(), owner.Workspace, owner.Deployment); err == nil {
		t.Fatal("a dead process erased items")
	}
	tb.Dead.Store(false)
	if now := counted(); now != all {
		t.Errorf("after a page that was not erased %d bytes are counted, want %d", now, all)
	}

	calls := 0
	for more := true; more; calls++ {
		// The deadline is nearer than the time that an erasure leaves to its caller.
		hurried, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		var err error
		more, err = s.Erase(hurried, owner.Workspace, owner.Deployment)
		cancel()
		check.Must(t, err)
	}
	if want := 2*(2+2+1) + 1; calls != want {
		t.Errorf("the erasure took %d calls, want %d: a page each, and one that finds nothing", calls, want)
	}
	for _, label := range []string{"a", "b"} {
		if left := stored(t, tb, label); len(left) > 0 {
			t.Errorf("%d items are left of %s, the first is %v", len(left), label, left[0].Key)
		}
	}
	if now := counted(); now != stays {
		t.Errorf("at the end %d bytes are counted, want the %d of the other deployment", now, stays)
	}
}
