package run_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// expect has the client of a run come, which is to come again within a minute.
func (f *fixture) expect(r run.Run) {
	f.t.Helper()
	f.must(f.runs.Expect(f.t.Context(), r.Ref, time.Minute))
}

// missed looks for missing clients after some time.
func (f *fixture) missed(later time.Duration) error {
	f.hand.move(later)
	return f.runs.CancelMissed(f.t.Context(), f.hand.now())
}

// wantExpected checks how many clients a timer is going to look for.
func (f *fixture) wantExpected(want int) {
	f.t.Helper()
	found := 0
	for _, query := range keys.DueClients.Until(f.hand.now().Add(time.Hour)) {
		page, err := f.table.Query(f.t.Context(), query)
		f.must(err)
		found += len(page.Items)
	}
	if found != want {
		f.t.Errorf("%d clients are expected, want %d", found, want)
	}
}

func TestARunEndsIfItsClientDoesNotComeBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first, _ := f.started("first")
	second := f.create("second", run.Enqueue)
	f.expect(first)
	f.expect(second)
	f.must(f.missed(50 * time.Second))
	f.expect(first) // it comes back
	f.must(f.missed(20 * time.Second))
	if diff := cmp.Diff(map[run.Status]int{run.Running: 1, run.Interrupted: 1}, f.countStatuses()); diff != "" {
		t.Errorf("the queued run, whose client has not come (-want +got):\n%s", diff)
	}
	f.wantExpected(1)
	f.must(f.missed(40 * time.Second))
	if diff := cmp.Diff(map[run.Status]int{run.Interrupted: 2}, f.countStatuses()); diff != "" {
		t.Errorf("at the end (-want +got):\n%s", diff)
	}
	f.wantExpected(0)
}

func TestARunThatHasEndedWithoutItsClient(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("first")
	f.expect(r)
	f.finish(a)
	f.must(f.missed(2 * time.Minute))
	if diff := cmp.Diff(map[run.Status]int{run.Success: 1}, f.countStatuses()); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	f.wantExpected(0)
	f.expect(r)
	f.must(f.threads.Delete(f.t.Context(), f.ref))
	f.must(f.missed(2 * time.Minute))
	f.wantExpected(0)
}

// TestAClientThatComesBackAtTheLastMoment has the client come after its absence was read, before
// its run is cancelled.
func TestAClientThatComesBackAtTheLastMoment(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, _ := f.started("first")
	f.expect(r)
	f.table.beforeNext(func() { f.expect(r) })
	f.must(f.missed(2 * time.Minute))
	if diff := cmp.Diff(map[run.Status]int{run.Running: 1}, f.countStatuses()); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	f.wantExpected(1)
}

// TestAMissingClientIsServedWhenItsPassEnds checks that a pass completes what it has begun.
func TestAMissingClientIsServedWhenItsPassEnds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, _ := f.started("first")
	f.expect(r)
	pass, end := context.WithCancel(t.Context())
	defer end()
	f.table.beforeNext(end)
	f.hand.move(2 * time.Minute)
	f.must(f.runs.CancelMissed(pass, f.hand.now()))
	f.wantExpected(0)
}

// TestAMissingClientIsForgottenAfterADay checks that an expectation that nothing serves leaves.
func TestAMissingClientIsForgottenAfterADay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, _ := f.started("first")
	f.expect(r)
	f.wantExpected(1)
	f.hand.move(25 * time.Hour)
	f.wantExpected(0)
}

// TestAMissingClientWhoseRunCannotBeCancelled checks that the run is tried again later, and not in
// each pass.
func TestAMissingClientWhoseRunCannotBeCancelled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, _ := f.started("first")
	f.expect(r)
	broken := errors.New("the table cannot write to the thread")
	failing := run.NewStore(run.Config{Table: refusing{f.table, f.ref.Key(), broken}, Threads: f.threads, Workflow: f.engine, Now: f.hand.now})
	f.hand.move(2 * time.Minute)
	if err := failing.CancelMissed(t.Context(), f.hand.now()); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	f.wantExpected(1)
	f.must(f.missed(50 * time.Second))
	if diff := cmp.Diff(map[run.Status]int{run.Running: 1}, f.countStatuses()); diff != "" {
		t.Errorf("before its next time (-want +got):\n%s", diff)
	}
	f.must(f.missed(20 * time.Second))
	if diff := cmp.Diff(map[run.Status]int{run.Interrupted: 1}, f.countStatuses()); diff != "" {
		t.Errorf("at its next time (-want +got):\n%s", diff)
	}
}

// refusing is a table that cannot write to a key.
type refusing struct {
	table.Table
	key table.Key
	err error
}

func (r refusing) Transact(ctx context.Context, writes ...table.Write) error {
	for _, write := range writes {
		if write.Target() == r.key {
			return r.err
		}
	}
	return r.Table.Transact(ctx, writes...)
}
