package run_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
)

// TestTheWorkerOfADeletedThreadWritesNothing checks that the worker is fenced off from the
// moment when the thread is deleted, even if the erasure takes longer.
func TestTheWorkerOfADeletedThreadWritesNothing(t *testing.T) {
	t.Parallel()
	for name, erase := range map[string]func(*fixture) error{
		"of one thread": func(f *fixture) error { return f.threads.Delete(f.t.Context(), f.ref) },
		"of all": func(f *fixture) error {
			_, err := f.threads.Erase(f.t.Context(), f.ref.Workspace, f.ref.Deployment)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			_, a := f.started("x")
			var late error
			f.table.afterNext(func() {
				f.answer(a, "m", "late")
				late = a.Flush(t.Context())
			})
			f.must(erase(f))
			f.wantFenced(late)
			if left := f.items(); len(left) > 0 {
				t.Errorf("%d items are left", len(left))
			}
		})
	}
}

// TestARunOnTheThreadOfATemporaryOne creates a run on the thread of a temporary run, while the
// thread is removed or shortly before. The new run stays.
func TestARunOnTheThreadOfATemporaryOne(t *testing.T) {
	t.Parallel()
	for name, come := range map[string]func(f *fixture) run.Run{
		"while it goes": func(f *fixture) (next run.Run) {
			f.hand.move(time.Hour)
			f.table.beforeNext(func() { next = f.create("next", run.Enqueue) })
			f.must(f.runs.Rescue(f.t.Context(), f.hand.now()))
			return next
		},
		"before": func(f *fixture) run.Run {
			f.hand.move(time.Hour)
			next := f.create("next", run.Enqueue)
			f.finish(f.claim(next))
			f.must(f.runs.Rescue(f.t.Context(), f.hand.now()))
			return next
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			request := say("first", run.Enqueue)
			request.Temporary = true
			first, err := f.runs.Create(t.Context(), f.ref, request)
			f.must(err)
			f.finish(f.claim(first))
			next := come(f)
			if !f.get(next).Status.Final() {
				f.finish(f.claim(next))
			}
			if diff := cmp.Diff([]string{"human first", "human next"}, f.messages()); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			f.hand.move(time.Hour)
			f.must(f.runs.Rescue(t.Context(), f.hand.now()))
			if left := f.items(); len(left) > 0 {
				t.Errorf("%d items are left when nobody has come for an hour", len(left))
			}
		})
	}
}
