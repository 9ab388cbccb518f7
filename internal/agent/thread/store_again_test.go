package thread_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// meddled is a table that calls a function before one transaction, after a number of others.
type meddled struct {
	table.Table
	before func()
	after  int
}

func (m *meddled) Transact(ctx context.Context, writes ...table.Write) error {
	if m.after--; m.after == -1 {
		m.before()
	}
	return m.Table.Transact(ctx, writes...)
}

// TestAThreadIsCreatedAgainMeanwhile has a client delete a thread and create it again under its id
// while another request is about to change the former thread. The new thread stays as it is.
func TestAThreadIsCreatedAgainMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request func(s *thread.Store, ref thread.Ref, now clock.Clock) error
		// after is how many transactions the request makes before.
		after int
		want  string
	}{
		"a change": {func(s *thread.Store, ref thread.Ref, _ clock.Clock) error {
			_, err := s.Patch(t.Context(), ref, thread.Patch{Metadata: []byte(`{"seen":true}`)})
			return err
		}, 0, `{"owner":"grace","seen":true}`},
		"the end of its time":   {func(s *thread.Store, _ thread.Ref, now clock.Clock) error { return s.Sweep(t.Context(), now(), nil) }, 0, `{"owner":"grace"}`},
		"the end of an erasure": {func(s *thread.Store, ref thread.Ref, _ clock.Clock) error { return s.Delete(t.Context(), ref) }, 1, `{"owner":"grace"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			passing := fixtures.NewClockAt(start, time.Millisecond)
			now := passing.Now
			tb := &meddled{Table: fixtures.DomainTable(t, now), after: c.after}
			s, other := thread.NewStore(tb, now, quota.Limits{}, slog.Default()), thread.NewStore(tb.Table, now, quota.Limits{}, slog.Default())
			ref, ttl := newRef(), &thread.TTL{Strategy: thread.StrategyDelete, Minutes: 1}
			create := func(owner string) {
				_, err := other.Create(t.Context(), ref, json.RawMessage(`{"owner":"`+owner+`"}`), ttl, false)
				check.Must(t, err)
			}
			create("ada")
			passing.Pass(2 * time.Minute)
			tb.before = func() {
				if c.after > 0 {
					// The thread is a tombstone, whose timer another process carries out.
					check.Must(t, other.Sweep(t.Context(), now().Add(time.Hour), nil))
				} else {
					check.Must(t, other.Delete(t.Context(), ref))
				}
				create("grace")
			}
			check.Must(t, c.request(s, ref, now))
			if tb.after >= 0 {
				t.Fatal("the thread was not created again")
			}
			got, err := other.Get(t.Context(), ref)
			check.Must(t, err)
			if string(got.Metadata) != c.want {
				t.Errorf("got %s, want %s", got.Metadata, c.want)
			}
			if left, err := other.TTL(t.Context(), ref); err != nil || left == nil {
				t.Errorf("its time to live is %v (%v)", left, err)
			}
		})
	}
}

// overtaken is a table that calls a function after its first deletion.
type overtaken struct {
	table.Table
	after func()
}

func (o *overtaken) Delete(ctx context.Context, keys ...table.Key) error {
	err := o.Table.Delete(ctx, keys...)
	if after := o.after; after != nil {
		o.after = nil
		after()
	}
	return err
}

// TestASlowErasureSparesTheNextThread has a timer complete the erasure of a large thread, and a
// client create the thread again, while the request that deletes it has erased a part.
func TestASlowErasureSparesTheNextThread(t *testing.T) {
	t.Parallel()
	now := fixtures.NewClockAt(start, time.Millisecond).Now
	tb := &overtaken{Table: fixtures.DomainTable(t, now)}
	s, other := thread.NewStore(tb, now, quota.Limits{}, slog.Default()), thread.NewStore(tb.Table, now, quota.Limits{}, slog.Default())
	ref := newRef()
	const steps = 2 * table.MaxWrites
	create := func() {
		_, err := other.Create(t.Context(), ref, nil, nil, false)
		check.Must(t, err)
		log := thread.NewLog(ref, thread.Empty())
		for i := range steps {
			log = advance(t, tb.Table, log, fmt.Sprintf(`{"n%d":%d}`, i, i))
		}
	}
	create()
	tb.after = func() {
		check.Must(t, other.Sweep(t.Context(), now().Add(time.Hour), nil))
		create()
	}
	check.Must(t, s.Delete(t.Context(), ref))
	fresh := thread.NewStore(tb.Table, now, quota.Limits{}, slog.Default())
	found, err := fresh.History(t.Context(), ref, thread.Newest, steps, nil)
	check.Must(t, err)
	if len(found) != steps {
		t.Errorf("%d of %d checkpoints of the new thread are left", len(found), steps)
	}
}
