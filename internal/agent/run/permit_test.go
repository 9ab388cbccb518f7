package run_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// permits returns the items of a deployment's permits that are taken or waited for.
func (f *fixture) permits() []string {
	f.t.Helper()
	var found []string
	for row := range keys.PermitRows {
		items, err := table.AllItems(f.t.Context(), f.table, keys.Permits(f.ref.Workspace, f.ref.Deployment, row))
		f.must(err)
		for _, item := range items {
			found = append(found, fmt.Sprintf("%s of %s", item.Key.SK, item.Text("run")))
		}
	}
	return found
}

func (f *fixture) wantNoPermits() {
	f.t.Helper()
	if left := f.permits(); len(left) > 0 {
		f.t.Errorf("permits are left: %v", left)
	}
}

// elsewhere creates a run on a new thread.
func (f *fixture) elsewhere(text string) run.Run {
	f.t.Helper()
	ref := f.ref
	ref.Thread = id.New(clock.System())
	_, err := f.threads.Create(f.t.Context(), ref, nil, nil, false)
	f.must(err)
	r, err := f.runs.Create(f.t.Context(), ref, say(text, run.Enqueue))
	f.must(err)
	return r
}

// sit takes a run up. The run must get one of the permits.
func (f *fixture) sit(r run.Run, permits int) *run.Attempt {
	f.t.Helper()
	a, err := f.runs.Claim(f.t.Context(), r.Ref, permits)
	if err != nil {
		f.t.Fatalf("claim: %v", err)
	}
	return a
}

// wait makes a run wait for one of the permits. The run's workflow ends.
func (f *fixture) wait(r run.Run, permits int) {
	f.t.Helper()
	if _, err := f.runs.Claim(f.t.Context(), r.Ref, permits); !errors.Is(err, run.ErrWaitsForPermit) {
		f.t.Fatalf("got %v, want ErrWaits", err)
	}
	f.engine.end(r.Run, workflow.Succeeded)
}

// sent returns the runs to which another worker was sent.
func (f *fixture) sent(runs ...run.Run) []string {
	f.t.Helper()
	var sent []string
	for _, r := range runs {
		if slices.Contains(f.engine.names(), r.Run+"-2") {
			sent = append(sent, inputOf(r))
		}
	}
	return sent
}

// TestRunsWaitForPermitsInOrder checks that runs wait in the order of their creation, and that
// a new run does not go before them.
func TestRunsWaitForPermitsInOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var runs []run.Run
	for i := range 6 {
		runs = append(runs, f.elsewhere(fmt.Sprint(i)))
	}
	first, second := f.sit(runs[0], 2), f.sit(runs[1], 2)
	for _, i := range []int{4, 2, 3} { // the order of the claims does not matter
		f.wait(runs[i], 2)
	}
	f.wait(runs[2], 2) // nor does their number
	var left []string
	for i, a := range []*run.Attempt{first, second} {
		f.finish(a)
		left = append(left, fmt.Sprint(2+i))
		if diff := cmp.Diff(left, f.sent(runs...)); diff != "" {
			t.Errorf("runs that were sent a worker (-want +got):\n%s", diff)
		}
	}
	f.wait(runs[5], 2)
	for _, i := range []int{2, 3, 4, 5} {
		f.finish(f.sit(runs[i], 2))
	}
	if diff := cmp.Diff([]string{"2", "3", "4", "5"}, f.sent(runs...)); diff != "" {
		t.Errorf("runs that were sent a worker (-want +got):\n%s", diff)
	}
	f.wantNoPermits()
}

// TestARunThatBeganWithoutPermitsGoesOnWithoutOne: its deployment has got permits since, and all of
// them are taken.
func TestARunThatBeganWithoutPermitsGoesOnWithoutOne(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("before")
	other := f.sit(f.elsewhere("other"), 1)
	f.handOver(a)
	f.finish(f.sit(r, 1))
	f.finish(other)
	f.wantNoPermits()
}

// TestARunThatGotAPermitTakesNoOther when its worker comes: the permit came while it waited.
func TestARunThatGotAPermitTakesNoOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first, second := f.sit(f.elsewhere("first"), 2), f.sit(f.elsewhere("second"), 2)
	waiting := f.elsewhere("waiting")
	f.wait(waiting, 2)
	f.finish(first)
	f.finish(second)
	a := f.sit(waiting, 2)
	if taken := f.permits(); len(taken) != 1 {
		t.Errorf("permits are taken: %v, want one", taken)
	}
	f.finish(a)
	f.wantNoPermits()
}

// TestAPermitIsLeftInEveryWay checks every way in which a run can end. The waiting run has the
// permit then.
func TestAPermitIsLeftInEveryWay(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, end := range map[string]func(f *fixture, a *run.Attempt) error{
		"it succeeds": func(_ *fixture, a *run.Attempt) error { return a.Finish(ctx, run.Outcome{Status: run.Success}) },
		"its worker gives up": func(f *fixture, a *run.Attempt) error {
			return f.runs.Fail(ctx, a.Run.Ref, run.Failure{Name: "E"})
		},
		"it is cancelled":   func(f *fixture, a *run.Attempt) error { return f.runs.Cancel(ctx, a.Run.Ref, run.ActionInterrupt) },
		"it is rolled back": func(f *fixture, a *run.Attempt) error { return f.runs.Cancel(ctx, a.Run.Ref, run.ActionRollback) },
		"its thread is cancelled": func(f *fixture, _ *run.Attempt) error {
			_, err := f.runs.CancelThread(ctx, f.ref, run.ActionRollback)
			return err
		},
		"it is interrupted": func(f *fixture, _ *run.Attempt) error {
			next := f.create("next", run.Interrupt)
			_, err := f.runs.Claim(ctx, next.Ref, 1)
			if errors.Is(err, run.ErrWaitsForPermit) {
				err = f.runs.Cancel(ctx, next.Ref, run.ActionRollback)
			}
			return err
		},
		"its thread is deleted": func(f *fixture, a *run.Attempt) error {
			if err := f.threads.Delete(ctx, f.ref); err != nil {
				return err
			}
			return a.FreePermitOfDeletedRun(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			a := f.sit(f.create("1", run.Enqueue), 1)
			f.flush(a)
			waiting := f.elsewhere("2")
			f.wait(waiting, 1)
			f.must(end(f, a))
			f.finish(f.sit(waiting, 1))
			f.wantNoPermits()
		})
	}
}

// TestAPermitIsFoundFree checks that a waiting run finds a free permit when no process has
// given it the permit: either the thread of the run that held it was deleted and its worker
// has ended, or its worker died right after it had ended the run.
func TestAPermitIsFoundFree(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(f *fixture, a *run.Attempt) error{
		"the thread is gone": func(f *fixture, _ *run.Attempt) error { return f.threads.Delete(context.Background(), f.ref) },
		"the worker is gone": func(f *fixture, a *run.Attempt) error {
			f.table.afterNext(func() { f.table.dead.Store(true) })
			defer f.table.dead.Store(false)
			return a.Finish(context.Background(), run.Outcome{Status: run.Success})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			a := f.sit(f.create("1", run.Enqueue), 1)
			waiting := f.elsewhere("2")
			f.wait(waiting, 1)
			f.must(leave(f, a))
			f.rescue(4 * time.Minute)
			if sent := f.sent(waiting); len(sent) > 0 {
				t.Fatalf("a worker was sent to %v: who waits costs one now and then only", sent)
			}
			f.rescue(2 * time.Minute)
			f.wait(waiting, 1) // the first waiting run gets the permit, with the next worker
			f.finish(f.sit(waiting, 1))
			f.wantNoPermits()
		})
	}
}

// TestAPermitThatIsLeftInTheSameMoment checks that either the run that decides to wait or the
// run that releases the permit sees it.
func TestAPermitThatIsLeftInTheSameMoment(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.sit(f.create("1", run.Enqueue), 1)
	waiting := f.elsewhere("2")
	f.table.beforeNext(func() { f.finish(a) })
	f.wait(waiting, 1)
	if diff := cmp.Diff([]string{"2"}, f.sent(waiting)); diff != "" {
		t.Errorf("runs that were sent a worker (-want +got):\n%s", diff)
	}
	f.finish(f.sit(waiting, 1))
	f.wantNoPermits()
}

// TestADelayedRunWithAPermitIsNotDisplaced checks that no other run goes before a delayed run that
// is due and has got its permit: the other run would wait for this permit, and the run that has it
// for the other run.
func TestADelayedRunWithAPermitIsNotDisplaced(t *testing.T) {
	t.Parallel()
	for name, create := range map[string]func(f *fixture, dueAndPermitted func()) (run.Run, error){
		"by a host whose clock is slow": func(f *fixture, dueAndPermitted func()) (run.Run, error) {
			dueAndPermitted()
			slow := func() time.Time { return f.hand.now().Add(-time.Minute) }
			threads := thread.NewStore(f.table, slow, quota.Limits{}, slog.Default())
			runs := run.NewStore(run.Config{Table: f.table, Threads: threads, Workflow: f.engine, Now: slow})
			return runs.Create(f.t.Context(), f.ref, say("second", run.Enqueue))
		},
		"at the moment when it is due": func(f *fixture, dueAndPermitted func()) (run.Run, error) {
			f.table.beforeNext(dueAndPermitted)
			return f.runs.Create(f.t.Context(), f.ref, say("second", run.Enqueue))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			holder := f.sit(f.elsewhere("holder"), 1)
			request := say("delayed", run.Enqueue)
			request.After = time.Second
			delayed, err := f.runs.Create(t.Context(), f.ref, request)
			f.must(err)
			second, err := create(f, func() {
				f.hand.move(time.Second)
				f.wait(delayed, 1)
				f.finish(holder)
			})
			f.must(err)
			if got := f.thread().Lock.Run; got != delayed.Run {
				t.Fatalf("the active run is %s, want the delayed run", got)
			}
			f.finish(f.sit(delayed, 1))
			f.finish(f.sit(second, 1))
			f.wantNoPermits()
		})
	}
}

// TestAPermitOfADeletedRunIsFreedByItsNextWorker deletes the thread of a run that has a permit and
// no worker: a worker left it because no agent took it. The waiting run gets the permit as soon as
// the next worker comes, and not only when a worker looks after the waiting run.
func TestAPermitOfADeletedRunIsFreedByItsNextWorker(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.sit(f.create("1", run.Enqueue), 1)
	f.must(a.GiveBack(t.Context()))
	waiting := f.elsewhere("2")
	f.wait(waiting, 1)
	f.must(f.threads.Delete(t.Context(), f.ref))
	for range 2 { // the workflow engine may call the worker twice
		if _, err := f.runs.Claim(t.Context(), a.Run.Ref, 1); !errors.Is(err, run.ErrNothingToDo) {
			t.Fatalf("got %v, want ErrNothingToDo", err)
		}
	}
	if diff := cmp.Diff([]string{"2"}, f.sent(waiting)); diff != "" {
		t.Errorf("runs that were sent a worker (-want +got):\n%s", diff)
	}
	f.finish(f.sit(waiting, 1))
	f.wantNoPermits()
}

// TestAPermitIsTakenOnce checks that the first of two runs that find the permit free takes it:
// the other run waits.
func TestAPermitIsTakenOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first, second := f.create("1", run.Enqueue), f.elsewhere("2")
	var a *run.Attempt
	f.table.beforeNext(func() { a = f.sit(second, 1) })
	f.wait(first, 1)
	f.finish(a)
	f.finish(f.sit(first, 1))
	f.wantNoPermits()
}

// TestManyPermitsLieInRows checks that no more runs have permits than there are permits, and
// that few runs wait in a full row while another row has free permits.
func TestManyPermitsLieInRows(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const permits, all = 130, 160
	var sitting []*run.Attempt
	for i := range all {
		a, err := f.runs.Claim(t.Context(), f.elsewhere(fmt.Sprint(i)).Ref, permits)
		if err == nil {
			sitting = append(sitting, a)
		} else if !errors.Is(err, run.ErrWaitsForPermit) {
			t.Fatal(err)
		}
	}
	if n := len(sitting); n > permits || n < permits*9/10 {
		t.Errorf("%d runs sit on %d permits", n, permits)
	}
}

// crowd are workers in several processes. They work on more runs than there are permits, and
// some of them die.
type crowd struct {
	*fixture
	permits int
	tasks   chan run.Task
	// working are the runs that have a worker.
	mu      sync.Mutex
	working map[string]bool
	most    int
	died    atomic.Int64
}

func (c *crowd) work(runs *run.Store, rng *rand.Rand) {
	for task := range c.tasks {
		a, err := runs.Claim(c.t.Context(), task.Ref(), c.permits)
		if errors.Is(err, run.ErrWaitsForPermit) || errors.Is(err, run.ErrNothingToDo) {
			continue
		}
		if err != nil {
			c.t.Error(err)
			continue
		}
		c.mu.Lock()
		c.working[task.Run] = true // also while a dead worker's run waits for the next
		c.most = max(c.most, len(c.working))
		c.mu.Unlock()
		if rng.IntN(4) == 0 && a.Run.Attempt < run.MaxAttempts {
			c.died.Add(1)
			c.tasks <- task // as reconcile would
			continue
		}
		c.mu.Lock()
		delete(c.working, task.Run)
		c.mu.Unlock()
		if err := a.Finish(c.t.Context(), run.Outcome{Status: run.Success}); err != nil && !errors.Is(err, run.ErrFenced) {
			c.t.Error(err)
		}
	}
}

// TestNoMoreRunsThanPermits checks that no more runs than permits are worked on at a time, in
// all processes together, and that all runs end.
func TestNoMoreRunsThanPermits(t *testing.T) {
	t.Parallel()
	const all, processes = 60, 6
	c := &crowd{fixture: newFixture(t), permits: 3, tasks: make(chan run.Task, 100*all), working: map[string]bool{}}
	tb := c.table.Table
	c.engine.onStart = func(task run.Task) { c.tasks <- task }
	var done sync.WaitGroup
	for n := range processes {
		threads := thread.NewStore(tb, c.hand.now, quota.Limits{}, slog.Default())
		runs := run.NewStore(run.Config{Table: tb, Threads: threads, Workflow: c.engine, Now: c.hand.now})
		done.Go(func() { c.work(runs, rand.New(rand.NewPCG(uint64(n), 7))) })
	}
	var runs []run.Run
	for i := range all {
		runs = append(runs, c.elsewhere(fmt.Sprint(i)))
	}
	for _, r := range runs {
		if got, err := c.runs.Await(t.Context(), r.Ref); err != nil || got.Status != run.Success {
			t.Errorf("run ended as %s: %v", got.Status, err)
		}
	}
	close(c.tasks)
	done.Wait()
	if c.most > c.permits || c.died.Load() == 0 {
		t.Errorf("%d runs were worked on at a time, of %d permits, and %d workers died", c.most, c.permits, c.died.Load())
	}
	c.wantNoPermits()
}
