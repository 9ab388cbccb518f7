package run_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
)

// meanwhile is a table that calls a function once, right before an item is read.
type meanwhile struct {
	table.Table
	key    table.Key
	before func()
}

func (m *meanwhile) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	if before := m.before; before != nil && key == m.key {
		m.before = nil
		before()
	}
	return m.Table.Get(ctx, key)
}

// TestTheActiveRunIsRolledBackBeforeItIsRead lets requests read a lock that names a run which
// is removed before they read it: the requests decide again.
func TestTheActiveRunIsRolledBackBeforeItIsRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		delay   time.Duration
		request func(*run.Store, thread.Ref) error
		want    []run.Status
	}{
		"a cancel of all runs": {
			request: func(s *run.Store, ref thread.Ref) error {
				_, err := s.CancelThread(t.Context(), ref, run.ActionInterrupt)
				return err
			},
			want: []run.Status{run.Interrupted},
		},
		"a run, and the active one was waiting for its time": {
			delay: time.Minute,
			request: func(s *run.Store, ref thread.Ref) error {
				_, err := s.Create(t.Context(), ref, say("new", run.Enqueue))
				return err
			},
			want: []run.Status{run.Pending, run.Pending},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			request := say("old", run.Enqueue)
			request.After = c.delay
			old, err := f.runs.Create(t.Context(), f.ref, request)
			check.Must(t, err)
			between := &meanwhile{Table: f.table, key: old.Key(), before: func() { f.create("instead", run.Rollback) }}
			other := run.NewStore(run.Config{Table: between, Threads: thread.NewStore(between, f.hand.now, quota.Limits{}, slog.Default()), Workflow: f.engine, Now: f.hand.now})
			check.Must(t, c.request(other, f.ref))
			if between.before != nil {
				t.Error("the run was not read")
			}
			listed, _, err := f.runs.List(t.Context(), f.ref, run.Filter{Window: windowOf(10)})
			check.Must(t, err)
			if diff := cmp.Diff(c.want, f.statuses(listed...)); diff != "" {
				t.Errorf("statuses (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAFollowerIsNotToldOfARunThatItNeverSaw lets a follower find a run that is rolled back
// before the follower reads an event of it. The id of the end of this run would be the same as
// that of the previous run.
func TestAFollowerIsNotToldOfARunThatItNeverSaw(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("first")
	f.finish(a)
	gone, _ := f.started("old")
	between := &meanwhile{Table: f.table, key: gone.Key(), before: func() { f.finish(f.claim(f.create("instead", run.Rollback))) }}
	other := run.NewStore(run.Config{Table: between, Threads: thread.NewStore(between, f.hand.now, quota.Limits{}, slog.Default()), Workflow: f.engine, Now: f.hand.now})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ends := map[int64]string{}
	var last int64
	err := other.Follow(ctx, f.ref, run.ReaderPosition{}, func(part run.Part) error {
		for _, event := range part.Events {
			last = event.Position
		}
		if part.Ended {
			if before := ends[last]; before != "" {
				t.Errorf("runs %s and %s end behind event %d", before, part.Run.Run, last)
			}
			ends[last] = part.Run.Run
		}
		if len(ends) == 2 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for _, ended := range ends {
		if ended == gone.Run {
			t.Error("the follower is told of the end of the run that was rolled back")
		}
	}
}

// TestARunIsCreatedWhileOthersAreErased creates a run while delayed runs are erased: the new
// run is behind all of them, and stays.
func TestARunIsCreatedWhileOthersAreErased(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("first")
	f.answer(a, "m", "said")
	f.flush(a)
	request := say("delayed", run.Enqueue)
	request.After = time.Hour
	_, err := f.runs.Create(t.Context(), f.ref, request)
	f.must(err)
	var next run.Run
	f.table.afterNext(func() { next = f.create("next", run.Enqueue) })
	found, err := f.runs.CancelThread(t.Context(), f.ref, run.ActionRollback)
	f.must(err)
	if !found || next.Run == "" {
		t.Fatal("nothing was cancelled")
	}
	if got := f.get(next).Status; got != run.Pending {
		t.Errorf("the new run is %s", got)
	}
	f.finish(f.claim(next))
	if diff := cmp.Diff([]string{"human next"}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestARunIsInterruptedWhileItIsDeleted interrupts a run before its turn, while it is deleted:
// the run is deleted only when its input is in the state.
func TestARunIsInterruptedWhileItIsDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("first")
	f.answer(a, "m", "said")
	f.flush(a)
	second := f.create("second", run.Interrupt)
	var third run.Run
	f.table.beforeGet(second.Key(), func() { third = f.create("third", run.Interrupt) })
	f.must(f.runs.Delete(t.Context(), second.Ref))
	f.finish(f.claim(third))
	if diff := cmp.Diff([]string{"human first", "ai said", "human second", "human third"}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}
