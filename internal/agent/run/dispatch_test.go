package run_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// rescue runs Rescue after some time has passed.
func (f *fixture) rescue(later time.Duration) {
	f.t.Helper()
	f.hand.move(later)
	f.must(f.runs.Rescue(f.t.Context(), f.hand.now()))
}

// lost forgets the executions that were started, as if the process had died before it started
// them.
func (f *fixture) lost() {
	f.engine.mu.Lock()
	defer f.engine.mu.Unlock()
	f.engine.started = nil
}

func TestRescueStartsAWorkflowThatWasNeverStarted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.create("1", run.Enqueue)
	f.lost()
	f.rescue(29 * time.Second)
	if got := f.engine.names(); len(got) > 0 {
		t.Errorf("within the lease, %v was started", got)
	}
	f.rescue(2 * time.Second)
	if diff := cmp.Diff([]string{r.Run}, f.engine.names()); diff != "" {
		t.Errorf("started workflows (-want +got):\n%s", diff)
	}
	f.finish(f.claim(r))
}

func TestRescueStartsThePromotedRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("1")
	second := f.create("2", run.Enqueue)
	f.finish(a)
	f.lost()
	f.rescue(time.Minute)
	if diff := cmp.Diff([]string{second.Run}, f.engine.names()); diff != "" {
		t.Errorf("started workflows (-want +got):\n%s", diff)
	}
}

// TestRescueStartsAnotherWorkflow checks that Rescue does so when a workflow has ended and
// left its run unchanged.
func TestRescueStartsAnotherWorkflow(t *testing.T) {
	t.Parallel()
	for _, status := range []workflow.Status{workflow.Succeeded, workflow.Failed, workflow.TimedOut, workflow.Aborted} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			r, _ := f.started("1")
			f.engine.end(r.Run, status)
			f.rescue(time.Minute)
			if diff := cmp.Diff([]string{r.Run, r.Run + "-2"}, f.engine.names()); diff != "" {
				t.Errorf("started workflows (-want +got):\n%s", diff)
			}
			f.engine.end(r.Run+"-2", status)
			f.rescue(time.Minute)
			f.finish(f.claim(r))
			f.rescue(time.Minute)
			if diff := cmp.Diff([]string{r.Run, r.Run + "-2", r.Run + "-3"}, f.engine.names()); diff != "" {
				t.Errorf("started workflows (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRescueLeavesARunningWorkflowAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("1")
	f.rescue(time.Minute)
	f.rescue(time.Minute)
	if diff := cmp.Diff([]string{r.Run}, f.engine.names()); diff != "" {
		t.Errorf("started workflows (-want +got):\n%s", diff)
	}
	if got := f.get(r).Dispatches; got != 1 {
		t.Errorf("got %d dispatches, want 1", got)
	}
	f.finish(a) // the worker still owns its attempt
}

func TestRescueLeavesOtherRunsAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("1")
	f.create("2", run.Enqueue)
	f.create("3", run.Interrupt)
	f.create("4", run.Enqueue)
	f.finish(f.claim(run.Run{Ref: run.Ref{Ref: f.ref, Run: f.thread().Lock.Run}}))
	f.wantFenced(finishAs(run.Success)(f, run.Run{}, a))
	f.must(f.runs.Fail(t.Context(), run.Ref{Ref: f.ref, Run: f.thread().Lock.Run}, run.Failure{Name: "F"}))
	f.lost()
	f.rescue(time.Hour)
	if got := f.engine.names(); len(got) > 0 {
		t.Errorf("%v was started, though all runs are over", got)
	}
	for _, query := range keys.Leases.Until(f.hand.now().Add(time.Hour)) {
		leases, err := table.AllItems(t.Context(), f.table, query)
		f.must(err)
		for _, lease := range leases {
			t.Errorf("%s still has a lease, though it is over", lease.Key.SK)
		}
	}
}

// TestASilentWorkerKeepsItsLease checks that the worker renews its lease with flushes that
// have nothing else to write.
func TestASilentWorkerKeepsItsLease(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("1")
	f.engine.end(r.Run, workflow.Failed) // so that a rescue would start another workflow
	f.flush(a)                           // the values event with the run's input
	f.table.transactions.Store(0)
	for range 12 {
		f.hand.move(5 * time.Second)
		f.flush(a)
		f.rescue(0)
	}
	if diff := cmp.Diff([]string{r.Run}, f.engine.names()); diff != "" {
		t.Errorf("started workflows (-want +got):\n%s", diff)
	}
	if got := f.table.transactions.Load(); got > 6 {
		t.Errorf("a minute of silence took %d transactions, want at most 6", got)
	}
	f.rescue(31 * time.Second)
	if got := len(f.engine.names()); got != 2 {
		t.Errorf("%d workflows were started, want 2 once the worker is gone", got)
	}
}

// TestAWorkerMayHaveALongerLease checks that the lease of a run with a worker is renewed seldom
// then, and that the leases of runs without a worker are as short as before.
func TestAWorkerMayHaveALongerLease(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runs = run.NewStore(run.Config{Table: f.table, Threads: f.threads, Workflow: f.engine, Now: f.hand.now, WorkLease: 5 * time.Minute})
	r, a := f.started("1")
	f.engine.end(r.Run, workflow.Failed) // so that a rescue would start another workflow
	f.flush(a)                           // the values event with the run's input
	f.table.transactions.Store(0)
	for range 60 {
		f.hand.move(5 * time.Second)
		f.flush(a)
		f.rescue(0)
	}
	if got := f.table.transactions.Load(); got < 2 || got > 3 {
		t.Errorf("5 min of silence took %d transactions, want a renewal each 100 s", got)
	}
	want := func(when string, want int) {
		t.Helper()
		if got := f.engine.names(); len(got) != want {
			t.Errorf("%s: started workflows %v, want %d", when, got, want)
		}
	}
	f.rescue(3 * time.Minute)
	want("before the lease is over", 1)
	f.handOver(a)
	f.rescue(31 * time.Second)
	want("after a handover without a next slice", 2)
	a = f.claim(r)
	f.create("2", run.Interrupt)
	f.lost()
	f.rescue(31 * time.Second)
	want("after a takeover whose process died", 1)
	if f.thread().Lock.Unsealed {
		t.Error("the interrupted run is not sealed")
	}
	show(a, "m", "lost")
	f.wantFenced(a.Flush(t.Context()))
}

// TestRescueLooksSeldomAtARunThatWaits checks that a run whose workflow is known to be at work is
// not read again each minute, as thousands of runs may wait for workers. A run whose workflow was
// never started is found as soon as on one machine.
func TestRescueLooksSeldomAtARunThatWaits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runs = run.NewStore(run.Config{Table: f.table, Threads: f.threads, Workflow: f.engine, Now: f.hand.now, WorkLease: 5 * time.Minute})
	r := f.create("1", run.Enqueue)
	f.table.transactions.Store(0)
	want := func(when string, renewals int64, started ...string) {
		t.Helper()
		if got := f.table.transactions.Load(); got != renewals {
			t.Errorf("%s: got %d renewals of the lease, want %d", when, got, renewals)
		}
		if diff := cmp.Diff(started, f.engine.names()); diff != "" {
			t.Errorf("%s: started workflows (-want +got):\n%s", when, diff)
		}
	}
	for range 5 {
		f.rescue(time.Minute)
	}
	want("after 5 min", 1, r.Run)
	f.rescue(90 * time.Second)
	want("after 6.5 min", 2, r.Run)
	f.engine.end(r.Run, workflow.Succeeded)
	f.rescue(5*time.Minute + time.Second)
	want("when the workflow has put the run back", 3, r.Run, r.Run+"-2")
	f.lost()
	f.rescue(31 * time.Second)
	want("when the next workflow was not started", 4, r.Run+"-2")
	f.finish(f.claim(r))
}

// TestRescueAndAClaim lets a worker claim the run between the reading and the writing of
// Rescue.
func TestRescueAndAClaim(t *testing.T) {
	t.Parallel()
	for _, status := range []run.Status{run.Pending, run.Running} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			r, _ := f.in(status)
			f.engine.end(r.Run, workflow.Failed)
			f.table.beforeNext(func() { f.claim(r) })
			f.rescue(time.Minute)
			if diff := cmp.Diff([]string{r.Run}, f.engine.names()); diff != "" {
				t.Errorf("started workflows (-want +got):\n%s", diff)
			}
		})
	}
}

// paged is a table that remembers the largest page of an index query.
type paged struct {
	table.Table
	largest atomic.Int64
	fails   bool
}

var errPaged = errors.New("no queries")

func (p *paged) Query(ctx context.Context, query table.Query) (table.Page, error) {
	if query.Index != "" && p.fails {
		return table.Page{}, errPaged
	}
	page, err := p.Table.Query(ctx, query)
	if query.Index != "" {
		p.largest.Store(max(p.largest.Load(), int64(len(page.Items))))
	}
	return page, err
}

// overdue makes runs whose workflows were never started, each on a thread of its own.
func overdue(t *testing.T, n int) (*fixture, *paged) {
	t.Helper()
	tb := fixtures.DomainTable(t, clock.System)
	p := &paged{Table: tb}
	f := newFixtureOn(t, p)
	for range n {
		created, err := f.threads.Create(t.Context(), thread.Ref{Workspace: "w", Deployment: "d"}, nil, nil, false)
		f.must(err)
		_, err = f.runs.Create(t.Context(), created.Ref, say("x", run.Enqueue))
		f.must(err)
	}
	f.lost()
	f.hand.move(time.Minute)
	return f, p
}

// TestRescueReadsManyRunsInPages checks that no run is left out, although each run moves to
// another place in the index when it is rescued.
func TestRescueReadsManyRunsInPages(t *testing.T) {
	t.Parallel()
	const n = 300
	f, p := overdue(t, n)
	f.rescue(0)
	if got := len(f.engine.names()); got != n {
		t.Errorf("%d workflows were started, want %d", got, n)
	}
	if got := p.largest.Load(); got > 8 {
		t.Errorf("a page held %d runs", got)
	}
	f.table.transactions.Store(0)
	f.rescue(0)
	if got := f.table.transactions.Load(); got > 0 {
		t.Errorf("a second rescue wrote %d times", got)
	}
}

// TestRescueStopsWhenItsTimeIsUp checks that Rescue returns no error then, and that the next
// Rescue goes on.
func TestRescueStopsWhenItsTimeIsUp(t *testing.T) {
	t.Parallel()
	const n = 200
	f, _ := overdue(t, n)
	ctx, stop := context.WithCancel(t.Context())
	started := 0
	f.engine.onStart = func(run.Task) {
		if started++; started == 20 {
			stop()
		}
	}
	f.must(f.runs.Rescue(ctx, f.hand.now()))
	// Each of the 16 shards may complete the rescue that it has begun.
	if got := len(f.engine.names()); got < 20 || got > 20+16 {
		t.Errorf("%d workflows were started, want hardly more than 20", got)
	}
	f.must(f.runs.Rescue(ctx, f.hand.now()))
	f.rescue(0)
	if got := len(f.engine.names()); got != n {
		t.Errorf("%d workflows were started in the end, want %d", got, n)
	}
}

// TestRescueTellsEachTroubleOnce checks that each error is reported once, and that a failed
// rescue does not keep later runs from being rescued.
func TestRescueTellsEachTroubleOnce(t *testing.T) {
	t.Parallel()
	f, p := overdue(t, 100)
	f.engine.fails = errors.New("no engine")
	err := f.runs.Rescue(t.Context(), f.hand.now())
	if !errors.Is(err, f.engine.fails) || f.table.transactions.Load() < 100 {
		t.Errorf("got %v after %d transactions, want trouble with all the runs", err, f.table.transactions.Load())
	}
	p.fails = true
	if err := f.runs.Rescue(t.Context(), f.hand.now()); err == nil || err.Error() != "query due items: no queries" {
		t.Errorf("got %v, want the trouble of the table once", err)
	}
}

// TestRescueLeavesErasedRunsAlone checks runs that an index still lists after they were
// erased.
func TestRescueLeavesErasedRunsAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("1", run.Enqueue)
	f.lost()
	f.must(f.table.Transact(t.Context(), table.Delete{Key: f.ref.Key()}))
	f.rescue(time.Minute)
	if got := f.engine.names(); len(got) > 0 {
		t.Errorf("%v was started", got)
	}
}
