package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// TestARolledBackRunLeavesNothing checks that a rollback removes a long run and the thousand
// runs that wait behind it, in small transactions.
func TestARolledBackRunLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, first := f.started("first")
	f.answer(first, "m", "before")
	f.finish(first)
	before := f.items()
	r, a := f.started("long")
	for i := range 300 {
		show(a, fmt.Sprint("s", i), "shown")
		f.answer(a, fmt.Sprint("s", i), "said")
		f.flush(a)
	}
	f.enqueueMany(1000)
	f.table.largest = 0
	next := f.create("next", run.Rollback)
	if f.table.largest > 10 {
		t.Errorf("the rollback took a transaction of %d writes", f.table.largest)
	}
	if _, err := f.runs.Get(t.Context(), r.Ref); !fault.Is(err, fault.NotFound) {
		t.Errorf("the run is still there at once: %v", err)
	}
	listed, _, err := f.runs.List(t.Context(), f.ref, run.Filter{Window: windowOf(1000)})
	f.must(err)
	if len(listed) != 2 {
		t.Errorf("%d runs are listed", len(listed))
	}
	b := f.claim(next)
	if f.table.largest > table.MaxWrites {
		t.Errorf("a transaction had %d writes", f.table.largest)
	}
	if b.Run.Start < a.Run.Position {
		t.Errorf("the next run begins at position %d, which readers of the one before have seen", b.Run.Start)
	}
	f.finish(b)
	if diff := cmp.Diff([]string{"human first", "ai before", "human next"}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	// The next run has an item of its own, with a checkpoint and two batches of events.
	if left := len(f.items()); left > len(before)+4 {
		t.Errorf("%d items are left, %d were there before", left, len(before))
	}
}

// TestARollbackRestoresAnAgentsCheckpoints checks that a rollback also restores the results of
// tasks after the checkpoints, and the results of the checkpoint's own tasks.
func TestARollbackRestoresAnAgentsCheckpoints(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	checkpoint := func(a *run.Attempt, c graph.Checkpoint) {
		t.Helper()
		f.must(a.Checkpoint(c))
	}
	at := func(id, parent, values string, next []string, tasks string) graph.Checkpoint {
		return graph.Checkpoint{ID: id, ParentID: parent, Values: json.RawMessage(values), Next: next, Tasks: json.RawMessage(tasks), Data: []byte("data of " + id)}
	}
	_, a := f.started("first")
	checkpoint(a, at("c1", "", `{"n":1}`, []string{"ask"}, `[{"id":"t1","name":"ask","interrupts":[{"id":"i","value":"?"}]}]`))
	f.must(a.Writes(graph.Writes{CheckpointID: "c1", TaskID: "t1", Data: []byte("asked")}))
	f.must(a.Finish(t.Context(), run.Outcome{Status: run.Success, Interrupts: json.RawMessage(`{"t1":[{"id":"i","value":"?"}]}`)}))
	thread1, before := f.thread(), contents(f.items())

	resumed, err := f.runs.Create(t.Context(), f.ref, run.Request{Graph: "agent", Strategy: run.Enqueue, Payload: run.Payload{Command: json.RawMessage(`{"resume":"yes"}`)}})
	f.must(err)
	b := f.claim(resumed)
	f.must(b.Writes(graph.Writes{CheckpointID: "c1", TaskID: "t1", Data: []byte("answered")}))
	f.flush(b)
	checkpoint(b, at("c1", "", `{"n":1}`, []string{"ask"}, `[{"id":"t1","name":"ask","result":"yes"}]`))
	f.flush(b)
	checkpoint(b, at("c2", "c1", `{"n":2}`, []string{"more"}, `[]`))
	f.must(b.Writes(graph.Writes{CheckpointID: "c2", TaskID: "t2", Data: []byte("more")}))
	f.flush(b)
	f.must(f.runs.Cancel(t.Context(), resumed.Ref, run.ActionRollback))

	if diff := cmp.Diff(before, contents(f.items())); diff != "" {
		t.Errorf("items (-before +after):\n%s", diff)
	}
	after := f.thread()
	if after.Status != thread1.Status || string(after.Interrupts) != string(thread1.Interrupts) {
		t.Errorf("the thread is %s with %s, it was %s with %s", after.Status, after.Interrupts, thread1.Status, thread1.Interrupts)
	}
	_, c := f.started("again")
	if got := c.Log.Checkpoints(); got == nil || got.ID != "c1" || len(got.Writes) != 1 || string(got.Writes[0].Data) != "asked" {
		t.Errorf("the next run goes on from %+v", got)
	}
}

// contents returns the bodies of the items, except the bodies of the thread and of the earlier
// runs.
func contents(items []*table.Item) map[string]string {
	all := map[string]string{}
	for _, item := range items {
		if item.Key.SK != "THREAD" {
			all[item.Key.SK] = string(item.Body)
		}
	}
	return all
}

// TestCancelRacesWithTheEnd lets a cancel and the end of a run race: the first of them
// decides, and the run never leaves the status.
func TestCancelRacesWithTheEnd(t *testing.T) {
	t.Parallel()
	for _, action := range []run.Action{run.ActionInterrupt, run.ActionRollback} {
		f := newFixture(t)
		r, a := f.started("x")
		f.table.beforeNext(func() { f.finish(a) })
		if err := f.runs.Cancel(t.Context(), r.Ref, action); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s of a run that has just ended: %v", action, err)
		}
		if got := f.get(r).Status; got != run.Success {
			t.Errorf("the run is %s", got)
		}
		r, a = f.started("y")
		f.table.beforeNext(func() { f.must(f.runs.Cancel(t.Context(), r.Ref, action)) })
		f.wantFenced(a.Finish(t.Context(), run.Outcome{Status: run.Success}))
	}
}

// TestTheEndOfACancelIsFoundByRescue checks that Rescue completes a cancel whose process died
// in the middle.
func TestTheEndOfACancelIsFoundByRescue(t *testing.T) {
	t.Parallel()
	for _, action := range []run.Action{run.ActionInterrupt, run.ActionRollback} {
		f := newFixture(t)
		r, a := f.started("x")
		show(a, "m", "shown")
		f.flush(a)
		dead, die := context.WithCancel(t.Context())
		f.table.afterNext(die)
		if err := f.runs.Cancel(dead, r.Ref, action); err != nil {
			t.Logf("the process died: %v", err)
		}
		f.hand.move(time.Hour)
		f.must(f.runs.Rescue(t.Context(), f.hand.now()))
		if lock := f.thread().Lock; lock.Busy || lock.Unsealed || lock.RemoveFrom != "" {
			t.Errorf("%s: the thread is not cleared up: %+v", action, lock)
		}
	}
}

// TestADelayedRunGivesWay checks that a delayed run goes after the runs that come before its
// time, and starts then.
func TestADelayedRunGivesWay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	request := say("delayed", run.Enqueue)
	request.After = time.Minute
	delayed, err := f.runs.Create(t.Context(), f.ref, request)
	f.must(err)
	if _, err := f.runs.Claim(t.Context(), delayed.Ref, 0); !isEarly(err) {
		t.Fatalf("Claim before its time: %v", err)
	}
	if got := delayed.Created.Sub(f.hand.now()); got < 59*time.Second || got > time.Minute {
		t.Errorf("it was created %s from now", got)
	}
	first, second := f.create("first", run.Enqueue), f.create("second", run.Enqueue)
	f.finish(f.claim(first))
	f.hand.move(2 * time.Minute)
	late := f.create("late", run.Enqueue)
	f.finish(f.claim(second))
	f.finish(f.claim(delayed))
	f.finish(f.claim(late))
	if diff := cmp.Diff([]string{"human first", "human second", "human delayed", "human late"}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if got := f.thread(); got.Status != thread.StatusIdle || got.Lock.Busy {
		t.Errorf("the thread is %s: %+v", got.Status, got.Lock)
	}
	for _, r := range []run.Run{delayed, first, second, late} {
		found := false
		for _, name := range f.engine.names() {
			found = found || strings.HasPrefix(name, r.Run)
		}
		if !found {
			t.Errorf("run %s has no workflow", r.Run)
		}
	}
}

// TestADelayedRunThatGivesWayWhileItIsClaimed checks that the delayed run does not begin
// beside the run that goes first, or on a state that this run has written. The claim reads the
// run when its time has come. Before the claim writes, a host whose clock is behind creates
// another run.
func TestADelayedRunThatGivesWayWhileItIsClaimed(t *testing.T) {
	t.Parallel()
	take := map[string]func(f *fixture, delayed run.Run) error{
		"by a worker": func(f *fixture, delayed run.Run) error {
			a, err := f.runs.Claim(t.Context(), delayed.Ref, 0)
			if err == nil {
				show(a, "d", "delayed's answer")
				f.finish(a)
			}
			return err
		},
		"by who gives it up": func(f *fixture, delayed run.Run) error {
			return f.runs.Fail(t.Context(), delayed.Ref, run.Failure{Name: "Failed", Message: "it failed"})
		},
	}
	const made, works, over = "is made", "works", "is over"
	for name, taken := range take {
		for _, other := range []string{made, works, over} {
			t.Run(name+", when the other "+other, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				request := say("delayed", run.Enqueue)
				request.After = time.Minute
				delayed, err := f.runs.Create(t.Context(), f.ref, request)
				f.must(err)
				var first run.Run
				var a *run.Attempt
				f.hand.move(2 * time.Minute)
				f.table.beforeNext(func() {
					f.hand.move(-2 * time.Minute)
					if first = f.create("first", run.Enqueue); other != made {
						a = f.claim(first)
						show(a, "m", "first's answer")
						f.flush(a)
					}
					if other == over {
						f.finish(a)
					}
					f.hand.move(2 * time.Minute)
				})
				if err = taken(f, delayed); other != over {
					if err != nil && !errors.Is(err, run.ErrNothingToDo) {
						t.Fatal(err)
					}
					if got := f.get(delayed).Status; got != run.Pending {
						t.Errorf("the delayed run is %s beside the one that goes first", got)
					}
					if other == made {
						a = f.claim(first)
					}
					f.finish(a)
					err = taken(f, delayed)
				}
				f.must(err)
				one, second := f.get(first), f.get(delayed)
				if one.Position > second.Start || second.Start >= second.Position {
					t.Errorf("the events of the runs are %d to %d, and %d to %d", one.Start, one.Position, second.Start, second.Position)
				}
				if one.Status != run.Success || !second.Status.Final() {
					t.Errorf("the runs are %s and %s", one.Status, second.Status)
				}
				if diff := cmp.Diff([]string{"human first", "human delayed"}, f.messages()); diff != "" {
					t.Errorf("messages (-want +got):\n%s", diff)
				}
				if lock := f.thread().Lock; lock.Busy || lock.Position != second.Position {
					t.Errorf("the thread's lock is %+v, the last event %d", lock, second.Position)
				}
			})
		}
	}
}

// TestASupersededRunStaysSo checks that the run stays superseded when the delayed run that has
// superseded it gives way to another run.
func TestASupersededRunStaysSo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	active, _ := f.started("active")
	later := func(text string, strategy run.Strategy, after time.Duration) run.Run {
		request := say(text, strategy)
		request.After = after
		created, err := f.runs.Create(t.Context(), f.ref, request)
		f.must(err)
		return created
	}
	overtaken := later("overtaken", run.Enqueue, 10*time.Second)
	over := later("over", run.Interrupt, time.Minute)
	next := f.create("next", run.Enqueue)
	want := []run.Status{run.Interrupted, run.Interrupted, run.Pending, run.Pending}
	if diff := cmp.Diff(want, f.statuses(active, overtaken, over, next)); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	f.finish(f.claim(next))
	if diff := cmp.Diff([]string{"human active", "human overtaken", "human next"}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}
