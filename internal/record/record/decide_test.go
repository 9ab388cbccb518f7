package record_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestEachDecisionCounts has writers add to one number at the same time.
func TestEachDecisionCounts(t *testing.T) {
	t.Parallel()
	tb := fixtures.Table(t)
	check.Must(t, tb.Transact(t.Context(), put(nil)))
	const writers, each = 8, 10
	followed := make(chan int64, writers*each)
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				version, err := record.DecideValue(t.Context(), tb, func(ctx context.Context) (int64, record.Outbox, error) {
					item, err := tb.Get(ctx, key)
					if err != nil {
						return 0, record.Outbox{}, err
					}
					version := item.Int(record.Version)
					o := record.Write(record.Change(key, later, nil, table.Equals(record.Version, version)))
					o.Then(func(context.Context) { followed <- version })
					return version, o, nil
				})
				if err != nil || version == 0 {
					t.Errorf("got version %d, %v", version, err)
				}
			}
		})
	}
	all.Wait()
	if len(followed) != writers*each {
		t.Errorf("the work of %d commits was done %d times", writers*each, len(followed))
	}
	if item, err := tb.Get(t.Context(), key); err != nil || item.Int(record.Version) != 1+writers*each {
		t.Errorf("got %v, %v", item, err)
	}
}

// TestALostRaceWaits bounds both how often and for how long a decision is made again.
func TestALostRaceWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		err := record.Decide(t.Context(), nil, func(context.Context) (record.Outbox, error) {
			asked++
			return record.Outbox{}, record.ErrLost
		})
		took := time.Since(began)
		if !fault.Is(err, fault.Unavailable) || errors.Is(err, record.ErrLost) {
			t.Errorf("got %v, want a fault.Unavailable", err)
		}
		if took < 10*time.Second || took > 11*time.Second || asked < 40 || asked > 200 {
			t.Errorf("asked %d times in %v", asked, took)
		}
	})
}

func TestALostRaceEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := record.Decide(ctx, nil, func(context.Context) (record.Outbox, error) { return record.Outbox{}, record.ErrLost })
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
			t.Errorf("got %v after %v", err, took)
		}
	})
}

func TestAnErrorOfADecisionEndsIt(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	value, err := record.DecideValue(t.Context(), nil, func(context.Context) (int, record.Outbox, error) {
		return 1, record.Outbox{}, refused
	})
	if value != 0 || !errors.Is(err, refused) {
		t.Errorf("got %d, %v", value, err)
	}
}

// TestARefusalIsNoLostRace distinguishes the two meanings of a failed condition.
func TestARefusalIsNoLostRace(t *testing.T) {
	t.Parallel()
	tb, taken := fixtures.Table(t), errors.New("taken")
	check.Must(t, tb.Transact(t.Context(), put(nil)))
	unwritten := table.Delete{Key: table.Key{PK: "p", SK: "other"}, If: table.Present()}
	absent := table.Put{Item: table.Item{Key: key}, If: table.Absent()}
	refuse := func(item *table.Item) error {
		if item.Text(record.Kind) != "thing" {
			t.Errorf("the refusal got %v", item)
		}
		return taken
	}
	for name, c := range map[string]struct {
		add  func(*record.Outbox)
		want error
	}{
		"refused":                {func(o *record.Outbox) { o.AddOr(absent, refuse) }, taken},
		"refused without reason": {func(o *record.Outbox) { o.AddOr(absent, func(*table.Item) error { return nil }) }, record.ErrLost},
		"lost":                   {func(o *record.Outbox) { o.Add(absent) }, record.ErrLost},
		"lost before refused":    {func(o *record.Outbox) { o.Add(unwritten); o.AddOr(absent, refuse) }, record.ErrLost},
		"refused before lost":    {func(o *record.Outbox) { o.AddOr(absent, refuse); o.Add(unwritten) }, taken},
	} {
		var inner, o record.Outbox
		c.add(&inner)
		inner.Then(func(context.Context) { t.Errorf("%s: work followed what was not committed", name) })
		o.Join(inner)
		if err := record.Commit(t.Context(), tb, o); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestWorkFollowsACommitInOrderWhoeverWaits(t *testing.T) {
	t.Parallel()
	tb := fixtures.Table(t)
	ctx, cancel := context.WithCancel(t.Context())
	var order []int
	var first, second record.Outbox
	first.Add(put(nil))
	first.Then(func(work context.Context) {
		cancel()
		order = append(order, 1)
		if work.Err() != nil {
			t.Error("the work is cancelled with its request")
		}
	})
	second.Then(func(context.Context) { order = append(order, 2) })
	first.Join(second)
	if err := record.Commit(ctx, tb, first); err != nil || len(order) != 2 || order[0] != 1 {
		t.Errorf("got %v, work was done in order %v", err, order)
	}
}

func TestTryTellsWhetherItWrote(t *testing.T) {
	t.Parallel()
	tb := fixtures.Table(t)
	absent := table.Put{Item: table.Item{Key: key}, If: table.Absent()}
	for _, want := range []bool{true, false} {
		if applied, err := record.Try(t.Context(), tb, absent); applied != want || err != nil {
			t.Errorf("got %v, %v, want %v", applied, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if applied, err := record.Try(ctx, tb, absent); applied || err == nil {
		t.Errorf("a request that was cancelled: got %v, %v", applied, err)
	}
}
