package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestCreateFollowsItsStrategy creates a run "new" on an idle thread, on a thread with a run
// "active", and on a thread on which "queued" waits, too.
func TestCreateFollowsItsStrategy(t *testing.T) {
	t.Parallel()
	type situation struct {
		// Statuses are the statuses of active, queued (if there is a queued run) and new
		// (unless refused).
		Statuses []run.Status
		// Started are the runs whose workflow was started. Run and Last are the runs that the
		// lock names.
		Started   []string
		Run, Last string
	}
	const pending, running, interrupted = run.Pending, run.Running, run.Interrupted
	idle := situation{[]run.Status{pending}, []string{"new"}, "new", "new"}
	tests := map[string]struct {
		runs     []string
		strategy run.Strategy
		want     situation
	}{
		"reject on idle":      {nil, run.Reject, idle},
		"enqueue on idle":     {nil, run.Enqueue, idle},
		"interrupt on idle":   {nil, run.Interrupt, idle},
		"reject on busy":      {[]string{"active"}, run.Reject, situation{[]run.Status{running}, []string{"active"}, "active", "active"}},
		"enqueue on busy":     {[]string{"active"}, run.Enqueue, situation{[]run.Status{running, pending}, []string{"active"}, "active", "new"}},
		"interrupt on busy":   {[]string{"active"}, run.Interrupt, situation{[]run.Status{interrupted, pending}, []string{"active", "new"}, "new", "new"}},
		"reject on queued":    {[]string{"active", "queued"}, run.Reject, situation{[]run.Status{running, pending}, []string{"active"}, "active", "queued"}},
		"enqueue on queued":   {[]string{"active", "queued"}, run.Enqueue, situation{[]run.Status{running, pending, pending}, []string{"active"}, "active", "new"}},
		"interrupt on queued": {[]string{"active", "queued"}, run.Interrupt, situation{[]run.Status{interrupted, interrupted, pending}, []string{"active", "new"}, "new", "new"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			var runs []run.Run
			texts := map[string]string{}
			for _, text := range test.runs {
				runs = append(runs, f.create(text, run.Enqueue))
			}
			if len(runs) > 0 {
				f.claim(runs[0])
			}
			created, err := f.runs.Create(t.Context(), f.ref, say("new", test.strategy))
			if refused := test.strategy == run.Reject && len(runs) > 0; refused != fault.Is(err, fault.Conflict) {
				t.Fatalf("got %v, want a conflict: %v", err, refused)
			}
			if err == nil {
				runs = append(runs, created)
			}
			for i, r := range runs {
				texts[r.Run] = append(slices.Clone(test.runs), "new")[i]
			}
			lock, got := f.thread().Lock, situation{Statuses: f.statuses(runs...)}
			got.Run, got.Last = texts[lock.Run], texts[lock.Last]
			for _, name := range f.engine.names() {
				got.Started = append(got.Started, texts[name])
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if status := f.thread().Status; status != thread.StatusBusy || !lock.Busy {
				t.Errorf("the thread is %s, busy %v", status, lock.Busy)
			}
		})
	}
}

func TestACreatedRunIsReadAsItWasRequested(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	request := run.Request{
		AssistantID: "assistant", Graph: "agent", Strategy: run.Reject, StreamModes: []string{"values"},
		Payload: run.Payload{
			Input: input(`{"x":1}`), Command: json.RawMessage(`{"resume":1}`), Config: json.RawMessage(`{"tags":["a"]}`),
			Context: json.RawMessage(`{"c":1}`), Metadata: json.RawMessage(`{"m":1}`),
			InterruptBefore: json.RawMessage(`"*"`), InterruptAfter: json.RawMessage(`["n"]`),
		},
	}
	created, err := f.runs.Create(t.Context(), f.ref, request)
	check.Must(t, err)
	if diff := cmp.Diff(created, f.get(created), cmp.AllowUnexported(run.Input{})); diff != "" {
		t.Errorf("run (-created +read):\n%s", diff)
	}
	if diff := cmp.Diff(request, created.Request, cmp.AllowUnexported(run.Input{})); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if created.Status != run.Pending || created.Checkpoint != -1 || created.Attempt != 0 {
		t.Errorf("got %+v", created)
	}
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	unknown := f.ref
	unknown.Thread = "unknown"
	if _, err := f.runs.Create(t.Context(), unknown, say("x", run.Enqueue)); !fault.Is(err, fault.NotFound) {
		t.Errorf("unknown thread: got %v, want not found", err)
	}
	if _, err := f.runs.Get(t.Context(), run.Ref{Ref: f.ref, Run: "unknown"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("unknown run: got %v, want not found", err)
	}
	if lock := f.thread().Lock; lock.Epoch != 0 {
		t.Errorf("the lock was changed: %+v", lock)
	}
}

// TestCreateDecidesAgain lets another request change the thread after a creation has read it
// and before the creation writes.
func TestCreateDecidesAgain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		strategy run.Strategy
		between  func(f *fixture, a *run.Attempt)
		refused  bool
		want     []run.Status // the statuses of the first run and of the new run
	}{
		"enqueue, and the run ends":        {run.Enqueue, (*fixture).finish, false, []run.Status{run.Success, run.Pending}},
		"reject, and the run had ended":    {run.Reject, func(*fixture, *run.Attempt) {}, true, []run.Status{run.Running}},
		"interrupt, and the run ends":      {run.Interrupt, (*fixture).finish, false, []run.Status{run.Success, run.Pending}},
		"interrupt, and another is queued": {run.Interrupt, func(f *fixture, _ *run.Attempt) { f.create("other", run.Enqueue) }, false, []run.Status{run.Interrupted, run.Pending}},
		"enqueue, and another interrupts":  {run.Enqueue, func(f *fixture, _ *run.Attempt) { f.create("other", run.Interrupt) }, false, []run.Status{run.Interrupted, run.Pending}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			first, a := f.started("first")
			f.table.beforeNext(func() { test.between(f, a) })
			created, err := f.runs.Create(t.Context(), f.ref, say("new", test.strategy))
			if test.refused != fault.Is(err, fault.Conflict) {
				t.Fatalf("got %v, want a conflict: %v", err, test.refused)
			}
			runs := []run.Run{first}
			if err == nil {
				runs = append(runs, created)
			}
			if diff := cmp.Diff(test.want, f.statuses(runs...)); diff != "" {
				t.Errorf("statuses (-want +got):\n%s", diff)
			}
			active := f.thread().Lock.Run
			if !slices.Contains(f.engine.names(), active) {
				t.Errorf("no workflow carries the active run %s", active)
			}
		})
	}
}

// TestRejectOnAThreadThatBecameBusy lets another client create a run before the request
// writes.
func TestRejectOnAThreadThatBecameBusy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.table.beforeNext(func() { f.create("other", run.Enqueue) })
	if _, err := f.runs.Create(t.Context(), f.ref, say("new", run.Reject)); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
}

// TestRunIDsFollowTheOrderOfCreation checks that the ids ascend even if the clock of the host
// is behind the clock of the previous host.
func TestRunIDsFollowTheOrderOfCreation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var ids []string
	for range 10 {
		r := f.create("x", run.Enqueue)
		if len(ids) > 0 && !r.Created.After(f.get(run.Run{Ref: run.Ref{Ref: f.ref, Run: ids[len(ids)-1]}}).Created) {
			t.Errorf("run %s was created before its predecessor", r.Run)
		}
		ids = append(ids, r.Run)
		f.hand.move(-time.Hour)
	}
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("ids do not ascend: %v", ids)
	}
}

// TestConcurrentInterruptsLeaveOneRun lets 20 clients interrupt each other.
func TestConcurrentInterruptsLeaveOneRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	commits := map[any]string{} // the active run, by the epoch before it
	var mu sync.Mutex
	f.table.committed = func(writes []table.Write) {
		mu.Lock()
		defer mu.Unlock()
		for _, write := range writes {
			if change, ok := write.(table.Update); ok && change.Key == f.ref.Key() {
				commits[change.If.Terms()[0].Values[0]] = change.Set["run"].(string)
			}
		}
	}
	runs := make([]run.Run, 20)
	var clients sync.WaitGroup
	for i := range runs {
		clients.Go(func() {
			var err error
			if runs[i], err = f.runs.Create(t.Context(), f.ref, say("x", run.Interrupt)); err != nil {
				t.Error(err)
			}
		})
	}
	clients.Wait()
	counts := map[run.Status]int{}
	for _, r := range runs {
		counts[f.get(r).Status]++
	}
	if diff := cmp.Diff(map[run.Status]int{run.Pending: 1, run.Interrupted: 19}, counts); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	var order []string
	for epoch := range int64(20) {
		order = append(order, commits[epoch])
	}
	if !slices.IsSorted(order) || order[0] == "" {
		t.Errorf("in the order of commits, the ids are %v", order)
	}
	lock := f.thread().Lock
	if lock.Epoch != 20 || lock.Run != order[19] || lock.Last != lock.Run || !lock.Busy || !lock.Unsealed {
		t.Errorf("got lock %+v after 20 changes", lock)
	}
}

// TestARunWhoseWorkflowCannotBeStarted checks that the run is accepted, because it is stored,
// and that Rescue starts it.
func TestARunWhoseWorkflowCannotBeStarted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.engine.fails = errors.New("no engine")
	if _, err := f.runs.Create(t.Context(), f.ref, say("x", run.Enqueue)); err != nil {
		t.Fatal(err)
	}
	f.engine.fails = nil
	f.hand.move(time.Hour)
	check.Must(t, f.runs.Rescue(t.Context(), f.hand.now()))
	if diff := cmp.Diff([]string{f.thread().Lock.Run}, f.engine.names()); diff != "" {
		t.Errorf("started workflows (-want +got):\n%s", diff)
	}
}

// TestAClientThatLeavesItsRunBehind cancels the client's context after the run is created and
// before its workflow starts.
func TestAClientThatLeavesItsRunBehind(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, leave := context.WithCancel(t.Context())
	f.table.afterNext(leave)
	r, err := f.runs.Create(ctx, f.ref, say("x", run.Enqueue))
	check.Must(t, err)
	if diff := cmp.Diff([]string{r.Run}, f.engine.names()); diff != "" {
		t.Errorf("started workflows (-want +got):\n%s", diff)
	}
}

// TestARequestStaysAsItsCallerMadeIt checks that Create does not change the request, so that
// the caller can create another run with it.
func TestARequestStaysAsItsCallerMadeIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("x")
	f.answer(a, "m", "answer")
	f.finish(a)
	at, err := f.threads.State(t.Context(), f.ref)
	check.Must(t, err)
	request := run.Request{Strategy: run.Enqueue, Fork: &run.Fork{ID: at.At.ID}}
	created, err := f.runs.Create(t.Context(), f.ref, request)
	check.Must(t, err)
	if created.Fork.Number != at.At.Number || request.Fork.Number != 0 {
		t.Errorf("the run goes on from checkpoint %d, and its request says %d: want %d and 0", created.Fork.Number, request.Fork.Number, at.At.Number)
	}
}

// TestTheWorkflowOfADelayedRunIsStopped checks that the workflow is stopped when the run no
// longer needs it, in every way in which the run can lose its turn.
func TestTheWorkflowOfADelayedRunIsStopped(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(f *fixture, delayed run.Run){
		"another run goes first": func(f *fixture, _ run.Run) { f.create("first", run.Enqueue) },
		"interrupt":              func(f *fixture, _ run.Run) { f.create("new", run.Interrupt) },
		"rollback":               func(f *fixture, _ run.Run) { f.create("new", run.Rollback) },
		"cancel": func(f *fixture, delayed run.Run) {
			f.must(f.runs.Cancel(f.t.Context(), delayed.Ref, run.ActionInterrupt))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			request := say("later", run.Enqueue)
			request.After = time.Hour
			delayed, err := f.runs.Create(t.Context(), f.ref, request)
			f.must(err)
			end(f, delayed)
			if diff := cmp.Diff([]string{delayed.Run}, f.engine.stopped); diff != "" {
				t.Errorf("stopped workflows (-want +got):\n%s", diff)
			}
		})
	}
}
