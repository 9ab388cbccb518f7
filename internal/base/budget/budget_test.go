package budget_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/slipway-run/slipway/internal/base/budget"
)

// growing grows a share in the background.
type growing struct{ done chan error }

func grow(t *testing.T, s *budget.Share, bytes int64) growing {
	t.Helper()
	g := growing{make(chan error, 1)}
	go func() { g.done <- s.Grow(t.Context(), bytes) }()
	synctest.Wait()
	return g
}

func (g growing) want(t *testing.T, name string, granted bool) {
	t.Helper()
	synctest.Wait()
	if (len(g.done) == 1) != granted {
		t.Errorf("%s: granted %t, want %t", name, !granted, granted)
	}
}

func TestWhatIsSmallNeverWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(100)
		grow(t, b.Open("a", 0), 100).want(t, "all", true)
		small := b.Open("b", 10)
		grow(t, small, 10).want(t, "small", true)
		more := grow(t, small, 1)
		more.want(t, "more", false)
		if b.Held() != 100 {
			t.Errorf("%d bytes are held", b.Held())
		}
	})
}

// TestAttackOneOwnerTakesAll: the owner gets half of the budget. Its further claim waits while
// others go on.
func TestAttackOneOwnerTakesAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(100)
		first := b.Open("a", 0)
		grow(t, first, 30).want(t, "first", true)
		second := grow(t, b.Open("a", 0), 30)
		second.want(t, "second", false)
		grow(t, b.Open("b", 0), 50).want(t, "another owner", true)
		first.Shrink(20)
		second.want(t, "second, after the first gave back", true)
	})
}

// TestAttackOwnersThatHoldLastingShares: however many owners take as much as they get and give
// nothing back, something is left for the next owner.
func TestAttackOwnersThatHoldLastingShares(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := budget.NewLasting(1 << 10)
		most := int64(1 << 9)
		for i := range 5 {
			greedy := fmt.Sprint(i)
			grow(t, b.Open(greedy, 0), most).want(t, "owner "+greedy, true)
			grow(t, b.Open(greedy, 0), 1).want(t, "more for owner "+greedy, false)
			most /= 2
		}
		grow(t, b.Open("late", 0), most).want(t, "the late owner", true)
	})
}

// TestAttackAClaimOfAllThatLasts: while a claim of the whole budget waits for shares that are held
// for long, the smaller claims of others go on.
func TestAttackAClaimOfAllThatLasts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := budget.NewLasting(100)
		first := b.Open("a", 0)
		grow(t, first, 10).want(t, "first", true)
		all := grow(t, b.Open("b", 0), 100)
		all.want(t, "all", false)
		grow(t, b.Open("a", 0), 10).want(t, "more of the first owner", true)
		if !b.Open("c", 0).Try(20) {
			t.Error("another owner is refused")
		}
		small := b.Open("d", 0)
		grow(t, small, 20).want(t, "another owner", true)
		all.want(t, "all", false)
	})
}

// TestWhoHoldsLeastGoesOnFirst, although its claim came last.
func TestWhoHoldsLeastGoesOnFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(100)
		a, other := b.Open("a", 0), b.Open("b", 0)
		grow(t, a, 10).want(t, "a", true)
		grow(t, other, 80).want(t, "b", true)
		second := grow(t, b.Open("a", 0), 20)
		third := grow(t, b.Open("c", 0), 20)
		a.Shrink(10)
		// "a" holds nothing now, like "c", and waits; both want 20 of 20.
		other.Shrink(20)
		second.want(t, "second", true)
		third.want(t, "third", true)
	})
}

// TestSharesThatGrowInStepsDoNotBlockEachOther, although together they want more than the
// budget.
func TestSharesThatGrowInStepsDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(100)
		var done sync.WaitGroup
		for i := range 12 {
			done.Go(func() {
				s := b.Open(fmt.Sprint(i%3), 0)
				defer s.Close()
				for range 9 {
					if err := s.Grow(t.Context(), 10); err != nil {
						t.Error(err)
					}
				}
			})
		}
		done.Wait()
		if b.Held() != 0 {
			t.Errorf("%d bytes are held in the end", b.Held())
		}
	})
}

// TestAttackSharesThatTakeTurnsBeyondTheBudget: a share beyond the budget gives a part back and
// wants more. It goes on, and no other share joins it beyond the budget.
func TestAttackSharesThatTakeTurnsBeyondTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(100)
		first, second := b.Open("a", 0), b.Open("b", 0)
		grow(t, first, 45).want(t, "first", true)
		grow(t, second, 50).want(t, "second", true)
		waits := grow(t, second, 40)
		grow(t, first, 40).want(t, "first beyond the budget", true)
		first.Shrink(20)
		grow(t, first, 20).want(t, "more for the first", true)
		waits.want(t, "second beyond the budget, too", false)
		first.Close()
		waits.want(t, "second, after the first gave all back", true)
	})
}

func TestTheLargestThingFitsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(100)
		s := b.Open("a", 10)
		grow(t, s, 1000).want(t, "large", true)
		if b.Held() != 100 {
			t.Errorf("%d bytes are held", b.Held())
		}
		s.Shrink(950)
		if b.Held() != 40 {
			t.Errorf("%d bytes are held after most was given back", b.Held())
		}
		s.Close()
		s.Close()
		if b.Held() != 0 {
			t.Errorf("%d bytes are held in the end", b.Held())
		}
	})
}

func TestWhoGivesUpHoldsNothingMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(100)
		holder := b.Open("a", 0)
		grow(t, holder, 90).want(t, "holder", true)
		s := b.Open("b", 0)
		grow(t, s, 10).want(t, "first step", true)
		ctx, cancel := context.WithCancelCause(t.Context())
		done, gone := make(chan error, 1), errors.New("gone")
		go func() { done <- s.Grow(ctx, 20) }()
		synctest.Wait()
		behind := grow(t, b.Open("c", 0), 5)
		behind.want(t, "behind", false)
		cancel(gone)
		if err := <-done; !errors.Is(err, gone) || b.Held() != 100 {
			t.Errorf("got %v, and %d bytes are held", err, b.Held())
		}
		s.Close()
		behind.want(t, "behind, after that", true)
	})
}

// TestAGrantThatComesWithTheEndIsKept checks that bytes that are free are not refused, although the
// time to wait for them is over.
func TestAGrantThatComesWithTheEndIsKept(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		share := budget.New(100).Open("", 0)
		if err := share.Grow(over, 100); err != nil {
			t.Fatalf("the budget is free: %v", err)
		}
		share.Close()
	}
}
