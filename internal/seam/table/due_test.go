package table_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// plant stores count items in each of two partitions and returns the queries for them.
func plant(t *testing.T, count int) (table.Table, []table.Query) {
	t.Helper()
	stored := fixtures.DomainTable(t, clock.System)
	shards := []table.Query{{PK: "a"}, {PK: "b"}}
	for _, shard := range shards {
		for i := range count {
			item := table.Item{Key: table.Key{PK: shard.PK, SK: fmt.Sprintf("%s%02d", shard.PK, i)}}
			check.Must(t, stored.Transact(t.Context(), table.Put{Item: item}))
		}
	}
	return stored, shards
}

// served counts the items that a pass hands out.
type served struct {
	mu    sync.Mutex
	items []string
}

func (s *served) add(item *table.Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items = append(s.items, item.Key.SK)
}

// of returns the served items of a shard, in order.
func (s *served) of(shard table.Query) []string {
	return slices.DeleteFunc(slices.Clone(s.items), func(item string) bool { return !strings.HasPrefix(item, shard.PK) })
}

func TestPassGoesOnAfterTrouble(t *testing.T) {
	t.Parallel()
	stored, shards := plant(t, 7)
	var got served
	err := table.Pass{Shards: shards, Page: 3}.Serve(t.Context(), stored, func(_ context.Context, item *table.Item) error {
		got.add(item)
		if strings.HasSuffix(item.Key.SK, "1") || strings.HasSuffix(item.Key.SK, "5") {
			return errors.New("broken")
		}
		return nil
	})
	for _, shard := range shards {
		if items := got.of(shard); len(items) != 7 || !slices.IsSorted(items) {
			t.Errorf("of %s it served %v", shard.PK, items)
		}
	}
	if err == nil || strings.Count(err.Error(), "broken") != 4 || !strings.Contains(err.Error(), "a05") {
		t.Errorf("it says %v", err)
	}
}

func TestPassEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	stored, shards := plant(t, 7)
	var got served
	err := table.Pass{Shards: shards, Page: 2, Limit: 4}.Serve(t.Context(), stored, func(_ context.Context, item *table.Item) error {
		got.add(item)
		return nil
	})
	if err != nil || len(got.items) != 8 {
		t.Errorf("it served %v and says %v", got.items, err)
	}
}

func TestPassEndsWithItsContext(t *testing.T) {
	t.Parallel()
	stored, shards := plant(t, 7)
	ctx, cancel := context.WithCancel(t.Context())
	var got served
	err := table.Pass{Shards: shards[:1], Page: 2}.Serve(ctx, stored, func(ctx context.Context, item *table.Item) error {
		got.add(item)
		if len(got.items) == 3 {
			cancel()
		}
		return ctx.Err()
	})
	if err != nil || len(got.items) != 3 {
		t.Errorf("it served %v and says %v", got.items, err)
	}
}

// TestPassServesAnItemOnce moves each item behind the items that are still to come, as a
// caller that renews a lease does.
func TestPassServesAnItemOnce(t *testing.T) {
	t.Parallel()
	stored := fixtures.DomainTable(t, clock.System)
	due := func(i, round int) map[table.Index]table.Key {
		return map[table.Index]table.Key{table.ByDue: {PK: "due", SK: fmt.Sprintf("%d%02d", round, i)}}
	}
	for i := range 5 {
		item := table.Item{Key: table.Key{PK: "a", SK: fmt.Sprint("a", i)}, Index: due(i, 0)}
		check.Must(t, stored.Transact(t.Context(), table.Put{Item: item}))
	}
	var got served
	err := table.Pass{Shards: []table.Query{{Index: table.ByDue, PK: "due"}}, Page: 2}.Serve(t.Context(), stored, func(ctx context.Context, item *table.Item) error {
		got.add(item)
		return stored.Transact(ctx, table.Update{Key: item.Key, Index: due(len(got.items), 1)})
	})
	if err != nil || len(got.items) != 5 {
		t.Errorf("it served %v and says %v", got.items, err)
	}
}

// TestPassTellsSharedTroubleOnce breaks the table, which is the same error for each shard.
func TestPassTellsSharedTroubleOnce(t *testing.T) {
	t.Parallel()
	stored, shards := plant(t, 0)
	for i := range shards {
		shards[i].Cursor = "no cursor"
	}
	err := table.Pass{Shards: shards, Page: 2}.Serve(t.Context(), stored, nil)
	if err == nil || strings.Count(err.Error(), "query due items") != 1 {
		t.Errorf("it says %v", err)
	}
}

func TestEraseKeepsWhatDoesNotGo(t *testing.T) {
	t.Parallel()
	stored, shards := plant(t, table.MaxWrites+20)
	check.Must(t, table.Erase(t.Context(), stored, shards[0], func(item *table.Item) bool { return item.Key.SK != "a07" }))
	for i, want := range []int{1, table.MaxWrites + 20} {
		if left, err := table.AllItems(t.Context(), stored, shards[i]); err != nil || len(left) != want {
			t.Errorf("of %s %d items are left, want %d (%v)", shards[i].PK, len(left), want, err)
		}
	}
	check.Must(t, table.Erase(t.Context(), stored, shards[1], nil))
	if left, err := table.AllItems(t.Context(), stored, shards[1]); err != nil || len(left) != 0 {
		t.Errorf("%d items are left (%v)", len(left), err)
	}
}

func TestAttackAnItemWhoseServingPanics(t *testing.T) {
	t.Parallel()
	stored, shards := plant(t, 3)
	var got served
	err := table.Pass{Shards: shards, Page: 3}.Serve(t.Context(), stored, func(_ context.Context, item *table.Item) error {
		got.add(item)
		if item.Key.SK == "a01" {
			panic("poison")
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "poison") || len(got.items) != 6 {
		t.Errorf("got %v after %v, want the panic as an error after all items", err, got.items)
	}
}

// TestTheWorkOfAPassIsMarked checks that the table and the caller of a pass see whose work it is.
func TestTheWorkOfAPassIsMarked(t *testing.T) {
	t.Parallel()
	stored, shards := plant(t, 1)
	marked := 0
	var mu sync.Mutex
	err := table.Pass{Shards: shards, Page: 1}.Serve(t.Context(), stored, func(ctx context.Context, _ *table.Item) error {
		mu.Lock()
		defer mu.Unlock()
		if table.IsOfTimer(context.WithoutCancel(ctx)) {
			marked++
		}
		return nil
	})
	if err != nil || marked != len(shards) || table.IsOfTimer(t.Context()) {
		t.Errorf("%d of %d items were served by a timer: %v", marked, len(shards), err)
	}
}
