package thread_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// stepped returns a table whose deletions may end halfway, and a thread on it with a number of
// checkpoints, of which each adds a member to the state.
func stepped(t *testing.T, steps int) (*thread.Store, *fixtures.Halfway, thread.Thread) {
	t.Helper()
	tb := &fixtures.Halfway{Table: fixtures.DomainTable(t, clock.System)}
	s, ref := thread.NewStore(tb, ticking(), quota.Limits{}, slog.Default()), newRef()
	_, err := s.Create(t.Context(), ref, nil, nil, false)
	check.Must(t, err)
	log := thread.NewLog(ref, thread.Empty())
	for i := range steps {
		log = advance(t, tb, log, fmt.Sprintf(`{"n%d":%d}`, i, i))
	}
	made, err := s.Get(t.Context(), ref)
	check.Must(t, err)
	made.Lock.Checkpoint = int64(steps - 1)
	return s, tb, made
}

// TestADeletionThatEndsHalfway: no request sees what is left of the thread, and a timer erases it.
func TestADeletionThatEndsHalfway(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(s *thread.Store, of thread.Ref) error{
		"a timer": func(s *thread.Store, _ thread.Ref) error { return s.Sweep(t.Context(), start.Add(time.Hour), nil) },
		"a teardown": func(s *thread.Store, of thread.Ref) error {
			_, err := s.Erase(t.Context(), of.Workspace, of.Deployment)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, tb, of := stepped(t, 20)
			left := func() []*table.Item {
				items, err := table.AllItems(t.Context(), tb, table.Query{PK: keys.Thread(of.Workspace, of.Deployment, of.Thread).PK})
				check.Must(t, err)
				return items
			}
			tb.Dies.Store(true)
			before := len(left())
			if err := s.Delete(t.Context(), of.Ref); !errors.Is(err, fixtures.ErrHalfway) {
				t.Fatalf("got error %v, want %v", err, fixtures.ErrHalfway)
			}
			if n := len(left()); n < 5 || n >= before {
				t.Fatalf("%d of %d items are left, want a part", n, before)
			}
			if _, err := s.Get(t.Context(), of.Ref); !fault.Is(err, fault.NotFound) {
				t.Errorf("got error %v, want the thread to be gone", err)
			}
			tb.Dies.Store(false)
			check.Must(t, again(s, of.Ref))
			if n := len(left()); n > 0 {
				t.Errorf("%d items are left", n)
			}
		})
	}
}

// TestAPruningThatEndsHalfway: each checkpoint that is left has its whole state, and the thread can
// be pruned again.
func TestAPruningThatEndsHalfway(t *testing.T) {
	t.Parallel()
	const steps = 20
	s, tb, of := stepped(t, steps)
	tb.Dies.Store(true)
	if err := s.Prune(t.Context(), of); !errors.Is(err, fixtures.ErrHalfway) {
		t.Fatalf("got error %v, want %v", err, fixtures.ErrHalfway)
	}
	// The new store remembers no states.
	fresh := thread.NewStore(tb, ticking(), quota.Limits{}, slog.Default())
	numbers := func() (all []int64) {
		found, err := fresh.History(t.Context(), of.Ref, thread.Newest, 100, nil)
		check.Must(t, err)
		for _, one := range found {
			var members map[string]int
			check.Must(t, json.Unmarshal(one.Values, &members))
			if int64(len(members)) != one.Number+1 {
				t.Errorf("the state at checkpoint %d is %s", one.Number, one.Values)
			}
			if one.Number >= 0 {
				all = append(all, one.Number)
			}
		}
		return all
	}
	if n := len(numbers()); n < 5 || n >= steps {
		t.Fatalf("%d checkpoints are left, want a part of %d", n, steps)
	}
	tb.Dies.Store(false)
	of.Lock.Epoch++
	check.Must(t, s.Prune(t.Context(), of))
	if left := numbers(); len(left) != 1 || left[0] != steps-1 {
		t.Errorf("the checkpoints %v are left, want only the newest", left)
	}
	if _, err := tb.Get(t.Context(), keys.Checkpoint(of.Workspace, of.Deployment, of.Thread, 0)); !errors.Is(err, table.ErrNotFound) {
		t.Errorf("got error %v, want the first checkpoint to be gone", err)
	}
}

// TestNoStateIsMadeAroundAMissingCheckpoint, which a deletion of the thread has already erased.
func TestNoStateIsMadeAroundAMissingCheckpoint(t *testing.T) {
	t.Parallel()
	s, tb, of := stepped(t, 20)
	check.Must(t, tb.Delete(t.Context(), keys.Checkpoint(of.Workspace, of.Deployment, of.Thread, 10)))
	for _, number := range []int64{11, 19} {
		if st, err := s.StateAt(t.Context(), of.Ref, number); err == nil {
			t.Errorf("the state at checkpoint %d is %s", number, st.Values.JSON())
		}
	}
	if got := stateAt(t, s, of.Ref, 9).At.Number; got != 9 {
		t.Errorf("got the state at checkpoint %d, want 9", got)
	}
}

// TestAThreadWhoseBytesWereCountedSinceStays: its deletion gives back the bytes that were read.
func TestAThreadWhoseBytesWereCountedSinceStays(t *testing.T) {
	t.Parallel()
	s, tb, of := stepped(t, 1)
	pool := quota.NewPool(tb, ticking(), quota.Limits{}, slog.Default())
	for range 2 { // without counted bytes, and with some
		read, err := s.Get(t.Context(), of.Ref)
		check.Must(t, err)
		pool.CountStored(t.Context(), of.Workspace, 100, time.Time{}, table.Update{Key: of.Key(), Add: map[string]int64{"stored": 100}})
		if err := s.DeleteAsRead(t.Context(), read); !fault.Is(err, fault.Conflict) {
			t.Errorf("with %d bytes: got error %v, want a conflict", read.Stored, err)
		}
	}
	read, err := s.Get(t.Context(), of.Ref)
	check.Must(t, err)
	check.Must(t, s.DeleteAsRead(t.Context(), read))
}
