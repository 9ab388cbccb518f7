package quota_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

const (
	workspace = "0197a000-0000-7000-8000-00000000000a"
	stranger  = "0197a000-0000-7000-8000-00000000000b"
)

// take takes a place for a thread, as a decision does.
func take(ctx context.Context, tb table.Table, p *quota.Pool, workspace, thread string) (quota.Part, error) {
	reservation := p.Reserve(workspace, thread, quota.Threads, 0)
	err := record.Decide(ctx, tb, func(ctx context.Context) (o record.Outbox, err error) {
		return o, reservation.Take(ctx, &o)
	})
	return reservation.Part(), err
}

// TestThePoolIsExact for small limits and many concurrent requests: no request is refused
// while there is a place, and no place is given twice.
func TestThePoolIsExact(t *testing.T) {
	t.Parallel()
	for _, most := range []int64{0, 1, 5, 16, 21} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			t.Parallel()
			tb := fixtures.DomainTable(t, clock.System)
			p := quota.NewPool(tb, clock.System, quota.Limits{}.With(quota.Threads, most), slog.New(slog.DiscardHandler))
			const asked = 30
			parts, errs := make([]quota.Part, asked), make([]error, asked)
			var all sync.WaitGroup
			for i := range asked {
				all.Go(func() { parts[i], errs[i] = take(t.Context(), tb, p, workspace, fmt.Sprint("thread ", i)) })
			}
			all.Wait()
			got, freed := int64(0), quota.Freed{}
			for i, err := range errs {
				switch {
				case err == nil:
					got++
					freed.Add(parts[i], quota.Threads)
				case !fault.Is(err, fault.Forbidden):
					t.Error(err)
				}
			}
			wantUsed(t, p, got)
			if got != most {
				t.Fatalf("%d places were given, want %d", got, most)
			}
			check.Must(t, record.Commit(t.Context(), tb, record.Write(freed.Writes(workspace)...)))
			wantUsed(t, p, 0)
			if _, err := take(t.Context(), tb, p, stranger, "a"); (err == nil) != (most > 0) {
				t.Errorf("another workspace got %v", err)
			}
		})
	}
}

func wantUsed(t *testing.T, p *quota.Pool, want int64) {
	t.Helper()
	if used, err := p.Used(t.Context(), workspace); err != nil || used[quota.Threads] != want {
		t.Errorf("used are %v (%v), want %d threads", used, err, want)
	}
}

// TestAPlaceCountsWhatTheThreadBringsAlong without checking whether there is room for that.
func TestAPlaceCountsWhatTheThreadBringsAlong(t *testing.T) {
	t.Parallel()
	tb := fixtures.DomainTable(t, clock.System)
	p := quota.NewPool(tb, clock.System, quota.Limits{}.With(quota.Threads, 0).With(quota.Runs, 1), slog.New(slog.DiscardHandler))
	reservation := p.Reserve(workspace, "a", quota.Runs, 0)
	err := record.Decide(t.Context(), tb, func(ctx context.Context) (o record.Outbox, err error) {
		return o, reservation.Take(ctx, &o, quota.Threads)
	})
	if used, readErr := p.Used(t.Context(), workspace); err != nil || readErr != nil || used[quota.Threads] != 1 || used[quota.Runs] != 1 {
		t.Errorf("got %v, used are %v (%v)", err, used, readErr)
	}
}

func TestLimitsAreSettings(t *testing.T) {
	t.Parallel()
	for setting, ok := range map[string]bool{
		"": true, "threads=5": true, " threads=0 , webhooks=20": true, "webhooks=21": false, "thread=5": false, "threads": false, "threads=-1": false, "threads=x": false,
	} {
		limits, err := quota.ParseLimits(setting)
		if (err == nil) != ok {
			t.Errorf("%q: got %v", setting, err)
		}
		if again, err := quota.ParseLimits(limits.String()); err != nil || again.String() != limits.String() {
			t.Errorf("%q: %q is read back as %q, %v", setting, limits, again, err)
		}
	}
	limits, err := quota.ParseLimits("threads=5,threads=6")
	if err != nil || limits.Of(quota.Threads) != 6 || limits.Of(quota.Webhooks) != 10 {
		t.Errorf("got %v, %v", limits, err)
	}
}

// TestStoredBytesAreRightOnAverage: of many small objects few are counted, and their sum is
// right; a large object is counted to the grain.
func TestStoredBytesAreRightOnAverage(t *testing.T) {
	t.Parallel()
	const most, things, size = 1_000_000_000, 100_000, 1000 // a grain is 100,000
	p := quota.NewPool(fixtures.DomainTable(t, clock.System), clock.System, quota.Limits{}.With(quota.Stored, most), slog.New(slog.DiscardHandler))
	sum, counted := int64(0), 0
	for range things {
		if n := p.Draw(size); n != 0 {
			sum += n
			counted++
		}
	}
	// The deviation is sqrt(1,000 grains) = 3.2 %.
	if want := int64(things * size); sum < want*7/10 || sum > want*13/10 || counted > things/50 {
		t.Errorf("%d bytes were counted in %d writes, want about %d in %d", sum, counted, want, things/100)
	}
	if n := p.Draw(3_050_000); n != 3_000_000 && n != 3_100_000 {
		t.Errorf("counted are %d", n)
	}
}

// TestWhatExpiresIsCountedUntilItsMonthIsOver and bytes that do not expire are counted until
// they are given back.
func TestWhatExpiresIsCountedUntilItsMonthIsOver(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	var months atomic.Int32 // the number of months that have passed
	stands := func() time.Time { return now.AddDate(0, int(months.Load()), 0) }
	tb := fixtures.DomainTable(t, stands)
	p := quota.NewPool(tb, stands, quota.Limits{}, slog.New(slog.DiscardHandler))
	count := func(bytes int64, expires time.Time) {
		t.Helper()
		check.Must(t, p.Count(t.Context(), workspace, bytes, expires, nil))
	}
	want := func(bytes int64) {
		t.Helper()
		if used, err := p.Used(t.Context(), workspace); err != nil || used[quota.Stored] != bytes {
			t.Errorf("used are %v (%v), want %d", used, err, bytes)
		}
	}
	count(1, time.Time{})
	count(10, now)
	count(100, now.AddDate(0, 1, 0))
	count(1000, now.AddDate(0, -1, 0)) // it has expired by now
	want(111)
	count(-100, now.AddDate(0, 1, 0))
	want(11)
	months.Add(1)
	want(1)
	count(-1, time.Time{})
	want(0)
}
