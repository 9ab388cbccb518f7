package quota_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

const (
	deployment = "0197a000-0000-7000-8000-00000000000d"
	thread     = "0197a000-0000-7000-8000-00000000000e"
	sibling    = "0197a000-0000-7000-8000-00000000000f"
)

// processes are the counts of two processes that share one table.
func processes(t *testing.T, now clock.Clock, limits quota.Limits) [2]*quota.Shared {
	t.Helper()
	tb, log := fixtures.DomainTable(t, now), slog.New(slog.DiscardHandler)
	return [2]*quota.Shared{quota.NewShared(tb, now, limits, log), quota.NewShared(tb, now, limits, log)}
}

// wantRefused checks that an error is the refusal of a quota.
func wantRefused(t *testing.T, err error, name quota.Name) {
	t.Helper()
	if !fault.Is(err, fault.TooMany) || !strings.Contains(err.Error(), fmt.Sprintf("quota %s of", name)) || !strings.Contains(err.Error(), "(--quota") {
		t.Errorf("got %v, want a refusal because of %s", err, name)
	}
}

// TestStreamsOfAllProcessesAreCounted opens streams at two processes at once, whose count has one
// part and several parts. No stream is too many, and no stream is refused while there is a place.
func TestStreamsOfAllProcessesAreCounted(t *testing.T) {
	t.Parallel()
	for _, most := range []int64{0, 1, 5, 130} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			t.Parallel()
			at := processes(t, fixtures.NewClock().Now, quota.Limits{}.With(quota.Streams, most))
			asked := int(most) + 10
			leaves, errs := make([]func(), asked), make([]error, asked)
			var all sync.WaitGroup
			for i := range asked {
				all.Go(func() { leaves[i], errs[i] = at[i%2].Hold(t.Context(), workspace, "", "") })
			}
			all.Wait()
			open := int64(0)
			for i, err := range errs {
				if err == nil {
					open++
					defer leaves[i]()
				} else {
					wantRefused(t, err, quota.Streams)
				}
			}
			if open != most {
				t.Errorf("%d streams are open, want %d", open, most)
			}
			if most == 0 {
				return
			}
			leave, err := at[0].Hold(t.Context(), stranger, "", "")
			if err != nil {
				t.Fatalf("another workspace: %v", err)
			}
			leave()
		})
	}
}

// TestAStreamGivesItsPlaceBack takes the last place again and again, at either process, for
// longer than a term.
func TestAStreamGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	c := fixtures.NewClock()
	at := processes(t, c.Now, quota.Limits{}.With(quota.Streams, 1))
	for i := range 12 {
		leave, err := at[i%2].Hold(t.Context(), workspace, deployment, thread)
		if err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
		_, err = at[(i+1)%2].Hold(t.Context(), workspace, "", "")
		wantRefused(t, err, quota.Streams)
		leave()
		c.Pass(10 * time.Second)
	}
}

// meeting is a table that calls a function once, before a write to the count of a thread.
type meeting struct {
	table.Table

	before func()
}

func (m *meeting) InOrder(ctx context.Context, writes ...table.Write) error {
	first := keys.ThreadStreams(workspace, deployment, thread, 0).PK
	if before := m.before; before != nil && writes[0].Target().PK == first {
		m.before = nil
		before()
	}
	return m.Table.InOrder(ctx, writes...)
}

// TestAStreamWithoutAPlaceInItsThreadHasNoOther lets another stream take the last place of a thread
// when the stream is already counted in its workspace.
func TestAStreamWithoutAPlaceInItsThreadHasNoOther(t *testing.T) {
	t.Parallel()
	for _, open := range []int{0, 1} { // the count of the thread is a new item, or not
		now := fixtures.NewClock().Now
		tb := &meeting{Table: fixtures.DomainTable(t, now)}
		limits := quota.Limits{}.With(quota.Streams, int64(open+2)).With(quota.ThreadStreams, int64(open+1))
		shared := quota.NewShared(tb, now, limits, slog.New(slog.DiscardHandler))
		for range open {
			if _, err := shared.NewStreamPlace(t.Context(), workspace, deployment, thread); err != nil {
				t.Fatal(err)
			}
		}
		tb.before = func() {
			if _, err := shared.NewStreamPlace(t.Context(), workspace, deployment, thread); err != nil {
				t.Error(err)
			}
		}
		_, err := shared.NewStreamPlace(t.Context(), workspace, deployment, thread)
		wantRefused(t, err, quota.ThreadStreams)
		if _, err := shared.NewStreamPlace(t.Context(), workspace, "", ""); err != nil {
			t.Errorf("the last place of the workspace: %v", err)
		}
		_, err = shared.NewStreamPlace(t.Context(), workspace, "", "")
		wantRefused(t, err, quota.Streams)
	}
}

// TestAThreadHasItsOwnLimit fills a thread: other threads and other connections have places.
func TestAThreadHasItsOwnLimit(t *testing.T) {
	t.Parallel()
	at := processes(t, fixtures.NewClock().Now, quota.Limits{}.With(quota.ThreadStreams, 2))
	for i := range 2 {
		if _, err := at[i].NewStreamPlace(t.Context(), workspace, deployment, thread); err != nil {
			t.Fatal(err)
		}
	}
	_, err := at[0].NewStreamPlace(t.Context(), workspace, deployment, thread)
	wantRefused(t, err, quota.ThreadStreams)
	last, err := at[0].NewStreamPlace(t.Context(), workspace, deployment, sibling)
	check.Must(t, err)
	if _, err := at[1].NewStreamPlace(t.Context(), workspace, "", ""); err != nil {
		t.Error(err)
	}
	last.Leave(t.Context())
	for i := range 2 {
		if _, err := at[i].NewStreamPlace(t.Context(), workspace, deployment, sibling); err != nil {
			t.Errorf("stream %d after another has ended: %v", i, err)
		}
	}
}

// TestThePlaceOfADeadStreamComesBack has two streams, of which only one is renewed: the place of
// the other is free after two terms, and not earlier than after one term.
func TestThePlaceOfADeadStreamComesBack(t *testing.T) {
	t.Parallel()
	c := fixtures.NewClock()
	at := processes(t, c.Now, quota.Limits{}.With(quota.Streams, 2))
	alive, err := at[0].NewStreamPlace(t.Context(), workspace, deployment, thread)
	check.Must(t, err)
	if _, err := at[1].NewStreamPlace(t.Context(), workspace, deployment, thread); err != nil {
		t.Fatal(err)
	}
	renew := func() {
		t.Helper()
		check.Must(t, alive.Renew(t.Context()))
	}
	c.Pass(time.Minute)
	renew()
	_, err = at[0].NewStreamPlace(t.Context(), workspace, "", "")
	wantRefused(t, err, quota.Streams)
	c.Pass(time.Minute)
	renew()
	second, err := at[0].NewStreamPlace(t.Context(), workspace, "", "")
	if err != nil {
		t.Fatalf("the place of a dead stream is not free: %v", err)
	}
	_, err = at[1].NewStreamPlace(t.Context(), workspace, "", "")
	wantRefused(t, err, quota.Streams)
	alive.Leave(t.Context())
	second.Leave(t.Context())
	for i := range 2 {
		if _, err := at[i].NewStreamPlace(t.Context(), workspace, "", ""); err != nil {
			t.Errorf("stream %d after all have ended: %v", i, err)
		}
	}
	_, err = at[1].NewStreamPlace(t.Context(), workspace, "", "")
	wantRefused(t, err, quota.Streams)
}

// TestAStreamRenewsItsPlace holds a stream until it has been counted in three terms.
func TestAStreamRenewsItsPlace(t *testing.T) {
	t.Parallel()
	tb := fixtures.DomainTable(t, clock.System)
	shared := quota.NewShared(tb, clock.System, quota.Limits{}, slog.New(slog.DiscardHandler))
	shared.SetTerm(200 * time.Millisecond)
	leave, err := shared.Hold(t.Context(), workspace, deployment, thread)
	check.Must(t, err)
	defer leave()
	terms := table.Query{PK: keys.ThreadStreams(workspace, deployment, thread, 0).PK}
	for begun := time.Now(); ; {
		page, err := tb.Query(t.Context(), terms)
		check.Must(t, err)
		if len(page.Items) >= 3 {
			return
		}
		if time.Since(begun) > 5*time.Minute {
			t.Fatalf("the stream is counted in %d terms", len(page.Items))
		}
	}
}

// stuck is a table that answers no transaction.
type stuck struct {
	table.Table

	asked chan struct{}
}

func (s *stuck) Transact(ctx context.Context, _ ...table.Write) error {
	select {
	case s.asked <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestAStreamEndsWhileItsPlaceCannotBeRenewed, because the table does not answer.
func TestAStreamEndsWhileItsPlaceCannotBeRenewed(t *testing.T) {
	t.Parallel()
	tb := &stuck{Table: fixtures.DomainTable(t, clock.System), asked: make(chan struct{}, 1)}
	shared := quota.NewShared(tb, clock.System, quota.Limits{}, slog.New(slog.DiscardHandler))
	shared.SetTerm(200 * time.Millisecond)
	leave, err := shared.Hold(t.Context(), workspace, deployment, thread)
	check.Must(t, err)
	<-tb.asked
	leave()
}
