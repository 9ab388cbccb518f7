package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
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

// createTemporary creates a temporary run.
func (f *fixture) createTemporary(text string) run.Run {
	f.t.Helper()
	request := say(text, run.Enqueue)
	request.Temporary = true
	created, err := f.runs.Create(f.t.Context(), f.ref, request)
	f.must(err)
	return created
}

// TestATemporaryThreadIsStoredWithItsRun checks that nothing is stored of a thread whose run is not
// created, and that the run is created when another decision is needed.
func TestATemporaryThreadIsStoredWithItsRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ref.Thread = id.New(f.hand.now())
	alone, err := f.threads.NewTemporary(f.ref, json.RawMessage(`{"a":1}`))
	f.must(err)
	refusals := []error{record.ErrLost, errors.New("refused")}
	request := say("hello", run.Enqueue)
	request.Temporary = true
	request.Notes = []record.Note[run.Run]{func(context.Context, run.Run) (table.Write, error) {
		if len(refusals) == 0 {
			return nil, nil
		}
		err := refusals[0]
		refusals = refusals[1:]
		return nil, err
	}}
	if _, err := f.runs.CreateOn(t.Context(), alone, request); err == nil || len(f.items()) > 0 {
		t.Fatalf("%d items are stored of a run that is refused (%v)", len(f.items()), err)
	}
	created, err := f.runs.CreateOn(t.Context(), alone, request)
	f.must(err)
	if got := f.thread(); !got.Temporary || got.Lock.Run != created.Run || string(got.Metadata) != `{"a":1,"graph_id":"agent"}` {
		t.Errorf("the thread has the run %s and the metadata %s", got.Lock.Run, got.Metadata)
	}
	f.finish(f.claim(created))
	if diff := cmp.Diff([]string{"human hello"}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	f.hand.move(time.Hour)
	f.must(f.runs.Rescue(t.Context(), f.hand.now()))
	if left := f.items(); len(left) > 0 {
		t.Errorf("%d items are left after an hour", len(left))
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
		"and works for long": func(f *fixture) run.Run {
			next := f.create("next", run.Enqueue)
			a := f.claim(next)
			f.hand.move(time.Hour)
			f.must(f.runs.Rescue(f.t.Context(), f.hand.now()))
			f.finish(a)
			return next
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			first := f.createTemporary("first")
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

// TestTheThreadOfARemovedTemporaryRunGoes removes a temporary run in each way: its thread does not
// stay without it.
func TestTheThreadOfARemovedTemporaryRunGoes(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(f *fixture, r run.Run){
		"rolled back before it begins": func(f *fixture, r run.Run) { f.must(f.runs.Cancel(f.t.Context(), r.Ref, run.ActionRollback)) },
		"rolled back while it works": func(f *fixture, r run.Run) {
			f.claim(r)
			f.must(f.runs.Cancel(f.t.Context(), r.Ref, run.ActionRollback))
		},
		"deleted after its end": func(f *fixture, r run.Run) {
			f.finish(f.claim(r))
			f.must(f.runs.Delete(f.t.Context(), r.Ref))
		},
		"rolled back by another run": func(f *fixture, r run.Run) {
			f.claim(r)
			f.finish(f.claim(f.create("next", run.Rollback)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			first := f.createTemporary("first")
			remove(f, first)
			f.hand.move(time.Hour)
			f.must(f.runs.Rescue(t.Context(), f.hand.now()))
			f.must(f.threads.Sweep(t.Context(), f.hand.now(), f.runs.Seal))
			if left := f.items(); len(left) > 0 {
				t.Errorf("%d items are left after an hour", len(left))
			}
		})
	}
}

// TestTheThreadOfATemporaryRunThatGaveWayGoes cancels a delayed temporary run, in whose place
// another run works: the thread does not stay when both have ended.
func TestTheThreadOfATemporaryRunThatGaveWayGoes(t *testing.T) {
	t.Parallel()
	for _, action := range []run.Action{run.ActionRollback, run.ActionInterrupt} {
		f := newFixture(t)
		request := say("delayed", run.Enqueue)
		request.Temporary, request.After = true, time.Minute
		delayed, err := f.runs.Create(t.Context(), f.ref, request)
		f.must(err)
		a := f.claim(f.create("first", run.Enqueue))
		f.must(f.runs.Cancel(t.Context(), delayed.Ref, action))
		f.finish(a)
		f.hand.move(time.Hour)
		f.must(f.runs.Rescue(t.Context(), f.hand.now()))
		f.must(f.threads.Sweep(t.Context(), f.hand.now(), f.runs.Seal))
		if left := f.items(); len(left) > 0 {
			t.Errorf("%s: %d items are left after an hour", action, len(left))
		}
	}
}

// TestAThreadThatIsNotSealedExpires checks that a sweep seals a thread whose process died before it
// could, and that the thread goes when its time is over again.
func TestAThreadThatIsNotSealedExpires(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, err := f.threads.Patch(t.Context(), f.ref, thread.Patch{TTL: &thread.TTL{Strategy: thread.StrategyDelete, Minutes: 1}})
	f.must(err)
	_, leave := leavings["a run ends before a run whose client is lost"](f)
	f.table.afterNext(func() { f.table.dead.Store(true) })
	f.must(leave())
	f.table.dead.Store(false)
	for _, unsealed := range []bool{true, false} {
		if got := f.thread().Lock.Unsealed; got != unsealed {
			t.Errorf("unsealed: got %t, want %t", got, unsealed)
		}
		f.hand.move(time.Hour)
		f.must(f.threads.Sweep(t.Context(), f.hand.now(), f.runs.Seal))
	}
	if _, err := f.threads.Get(t.Context(), f.ref); !fault.Is(err, fault.NotFound) {
		t.Errorf("the thread when its time is over: %v", err)
	}
}

// TestARunIsCreatedWhileItsThreadExpires creates a run after a sweep has read its thread: the
// thread stays, and is swept when its time is over again.
func TestARunIsCreatedWhileItsThreadExpires(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, err := f.threads.Patch(t.Context(), f.ref, thread.Patch{TTL: &thread.TTL{Strategy: thread.StrategyDelete, Minutes: 1}})
	f.must(err)
	f.hand.move(time.Hour)
	var created run.Run
	f.table.beforeNext(func() { created = f.create("meanwhile", run.Enqueue) })
	f.must(f.threads.Sweep(t.Context(), f.hand.now(), f.runs.Seal))
	f.finish(f.claim(created))
	if diff := cmp.Diff([]string{"human meanwhile"}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	f.hand.move(time.Hour)
	f.must(f.threads.Sweep(t.Context(), f.hand.now(), f.runs.Seal))
	if _, err := f.threads.Get(t.Context(), f.ref); !fault.Is(err, fault.NotFound) {
		t.Errorf("the thread when its time is over: %v", err)
	}
}
