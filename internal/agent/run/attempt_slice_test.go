package run_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

func (f *fixture) handOver(a *run.Attempt) {
	f.t.Helper()
	if err := a.HandOver(f.t.Context()); err != nil {
		f.t.Fatalf("hand over: %v", err)
	}
}

// wantNoWorker checks the error of a claim.
func (f *fixture) wantNoWorker(r run.Run, want error) {
	f.t.Helper()
	if _, err := f.runs.Claim(f.t.Context(), r.Ref, 0); !errors.Is(err, want) {
		f.t.Fatalf("claim: got %v, want %v", err, want)
	}
}

// TestARunTakesManySlices checks that a run can have more slices than MaxAttempts, and that
// each slice goes on from the previous slice.
func TestARunTakesManySlices(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.create("1", run.Enqueue)
	want, events := []string{"human 1"}, "metadata values"
	for i := range 5 * run.MaxAttempts {
		a := f.claim(r)
		if a.Run.Attempt != int64(i+1) || a.Run.Failures != 0 {
			t.Errorf("slice %d is attempt %d after %d failures", i+1, a.Run.Attempt, a.Run.Failures)
		}
		if diff := cmp.Diff(want, f.read(a.Log.State)); diff != "" {
			t.Fatalf("state of slice %d (-want +got):\n%s", i+1, diff)
		}
		if i > 0 {
			events += " metadata"
		}
		step := fmt.Sprint("step ", i)
		f.answer(a, step, step)
		f.handOver(a)
		want, events = append(want, "ai "+step), events+" updates values"
	}
	f.finish(f.claim(r))
	if diff := cmp.Diff(want, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if got := names(f.replay(r, 0)); got != events+" metadata" {
		t.Errorf("got events %s\nwant %s metadata", got, events)
	}
}

// TestSlicesAreNoFailures checks that slices do not count as failures and do not reset the
// count of failures: the third failure ends the run, however far the run came.
func TestSlicesAreNoFailures(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.create("1", run.Enqueue)
	for i := range run.MaxAttempts {
		a := f.claim(r)
		step := fmt.Sprint("step ", i)
		f.answer(a, step, step)
		f.handOver(a)
		f.claim(r) // and the worker dies
	}
	f.wantNoWorker(r, run.ErrAttemptsExhausted)
	if got := f.get(r); got.Attempt != 2*run.MaxAttempts {
		t.Errorf("got attempt %d, want %d", got.Attempt, 2*run.MaxAttempts)
	}
}

// TestSlicesWithoutAStepEndTheRun checks that three such slices in a row end the run. A slice
// that makes a step allows three more.
func TestSlicesWithoutAStepEndTheRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.create("1", run.Enqueue)
	queued := f.create("2", run.Enqueue)
	idle := func(n int) {
		for range n {
			a := f.claim(r)
			show(a, fmt.Sprint("m", a.Run.Attempt), fmt.Sprint("I was say", a.Run.Attempt))
			f.must(a.Update(run.EventUpdates, []byte(`{"node":null}`))) // this changes nothing
			f.flush(a)
			f.handOver(a)
		}
	}
	idle(run.MaxIdleSlices - 1)
	a := f.claim(r)
	f.answer(a, "step", "step")
	f.flush(a)
	f.handOver(a)
	idle(run.MaxIdleSlices - 1)
	f.claim(r) // the worker dies: this is no slice and no step
	idle(1)
	f.wantNoWorker(r, run.ErrNoProgress)
	f.must(f.runs.TimeOut(t.Context(), r.Ref, run.Failure{Name: "NoProgress", Message: "m"}))
	if got := f.get(r); got.Status != run.Timeout || got.Failure.Name != "NoProgress" {
		t.Errorf("got status %s, failure %v", got.Status, got.Failure)
	}
	f.wantNoWorker(r, run.ErrNothingToDo)
	want := []string{"human 1", "ai step", "ai I was say4...", "ai I was say5...", "ai I was say7..."}
	if diff := cmp.Diff(want, f.result(r)); diff != "" {
		t.Errorf("what the run left behind (-want +got):\n%s", diff)
	}
	f.finish(f.claim(queued))
}

// TestTextOfAHandedOverSlice checks that the text is kept like the text of a worker that died:
// until the next attempt writes a message in its place.
func TestTextOfAHandedOverSlice(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		end  func(f *fixture, r run.Run)
		want []string
	}{
		"interrupted in between": {func(f *fixture, _ run.Run) { f.create("2", run.Interrupt) }, []string{"human 1", "ai The weather...", "human 2"}},
		"interrupted in the next slice": {func(f *fixture, r run.Run) {
			a := f.claim(r)
			show(a, "b", "The weather is")
			f.flush(a)
			f.create("2", run.Interrupt)
		}, []string{"human 1", "ai The weather is...", "human 2"}},
		"failed in between": {func(f *fixture, r run.Run) {
			f.must(f.runs.Fail(f.t.Context(), r.Ref, run.Failure{Name: "F"}))
		}, []string{"human 1", "ai The weather..."}},
		"answered": {func(f *fixture, r run.Run) {
			a := f.claim(r)
			f.answer(a, "b", "Sunny")
			f.finish(a)
		}, []string{"human 1", "ai Sunny"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			r, a := f.started("1")
			show(a, "a", "The ")
			f.flush(a)
			show(a, "a", "weather") // only the handover writes this
			f.handOver(a)
			test.end(f, r)
			if last := f.thread().Lock; last.Busy {
				f.finish(f.claim(run.Run{Ref: run.Ref{Ref: f.ref, Run: last.Run}}))
			}
			if diff := cmp.Diff(test.want, f.messages()); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAHandoverThatLostItsRun checks that the handover writes nothing, whichever process has
// the run now.
func TestAHandoverThatLostItsRun(t *testing.T) {
	t.Parallel()
	losses := map[string]func(f *fixture, r run.Run){
		"an interrupt": func(f *fixture, _ run.Run) { f.create("2", run.Interrupt) },
		"a takeover":   func(f *fixture, r run.Run) { f.claim(r) },
		"a slice after a takeover": func(f *fixture, r run.Run) {
			f.handOver(f.claim(r))
			f.claim(r)
		},
	}
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			r, a := f.started("1")
			show(a, "m", "late")
			f.table.beforeNext(func() { lose(f, r) })
			f.wantFenced(a.HandOver(t.Context()))
			if got := f.get(r); got.LastHandover == 1 {
				t.Error("the attempt counts as handed over")
			}
			if got := f.messages(); len(got) > 2 || got[0] != "human 1" {
				t.Errorf("got messages %q", got)
			}
		})
	}
}

// TestAHandoverRenewsTheLease checks that Rescue sends no other worker while the next slice
// starts.
func TestAHandoverRenewsTheLease(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("1")
	f.engine.end(r.Run, workflow.Failed) // so that a rescue would start another workflow
	f.hand.move(9 * time.Second)
	f.handOver(a)
	f.rescue(29 * time.Second)
	if got := f.engine.names(); len(got) != 1 {
		t.Errorf("started workflows %v", got)
	}
	f.rescue(2 * time.Second)
	if got := f.engine.names(); len(got) != 2 {
		t.Errorf("started workflows %v, want another one when no slice came", got)
	}
}

// torn is a table that applies a transaction, or does not apply it, and then loses the
// response.
type torn struct {
	table.Table
	applies bool
}

var errTorn = errors.New("the answer was lost")

func (c *torn) Transact(ctx context.Context, writes ...table.Write) error {
	if c.applies {
		if err := c.Table.Transact(ctx, writes...); err != nil {
			return err
		}
	}
	return errTorn
}

func (c *torn) InOrder(ctx context.Context, writes ...table.Write) error {
	return c.Transact(ctx, writes...)
}

// TestNothingFollowsAWriteWhoseAnswerWasLost checks that the attempt writes no more, because
// its events may be stored or not: the next attempt reads the stored state.
func TestNothingFollowsAWriteWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	for _, applies := range []bool{false, true} {
		for name, write := range map[string]func(*run.Attempt) error{
			"flush":     func(a *run.Attempt) error { show(a, "n", "more"); return a.Flush(t.Context()) },
			"hand over": func(a *run.Attempt) error { return a.HandOver(t.Context()) },
			"finish":    func(a *run.Attempt) error { return a.Finish(t.Context(), run.Outcome{Status: run.Success}) },
			"fail": func(a *run.Attempt) error {
				return a.Finish(t.Context(), run.Outcome{Status: run.Error, Failure: &run.Failure{Name: "F"}})
			},
		} {
			t.Run(fmt.Sprint(name, " after one that was applied: ", applies), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				r, a := f.started("1")
				f.answer(a, "m", "one")
				whole := f.table.Table
				f.table.Table = &torn{whole, applies}
				if err := a.Flush(t.Context()); !errors.Is(err, errTorn) {
					t.Fatalf("got %v", err)
				}
				f.table.Table = whole
				before := f.items()
				if err := write(a); !errors.Is(err, errTorn) {
					t.Errorf("got %v, want the error of the write before", err)
				}
				if diff := cmp.Diff(before, f.items()); diff != "" {
					t.Errorf("stored items (-before +after):\n%s", diff)
				}
				b := f.claim(r)
				f.answer(b, "n", "two")
				f.finish(b)
				next := int64(1)
				for _, event := range f.replay(r, 0) {
					if event.Position != next {
						t.Errorf("got position %d where %d is next", event.Position, next)
					}
					next++
				}
			})
		}
	}
}
