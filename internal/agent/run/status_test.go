package run_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/test/check"
)

func windowOf(limit int) record.Window { return record.Window{Limit: limit} }

// act is an operation on a run that may be refused. The worker a does it, or another process;
// a is nil while the run has no worker.
type act func(f *fixture, r run.Run, a *run.Attempt) error

func finishAs(status run.Status) act {
	return func(f *fixture, _ run.Run, a *run.Attempt) error {
		if a == nil {
			return run.ErrFenced // no worker, no finish
		}
		outcome := run.Outcome{Status: status}
		if status != run.Success {
			outcome.Failure = &run.Failure{Name: "E", Message: "m"}
		}
		return a.Finish(f.t.Context(), outcome)
	}
}

// acts are named after the status that they lead to.
var acts = map[string]act{
	"running (claim)": func(f *fixture, r run.Run, _ *run.Attempt) error {
		_, err := f.runs.Claim(f.t.Context(), r.Ref, 0)
		return err
	},
	"success": finishAs(run.Success),
	"error":   finishAs(run.Error),
	"timeout": finishAs(run.Timeout),
	"error (fail)": func(f *fixture, r run.Run, _ *run.Attempt) error {
		return f.runs.Fail(f.t.Context(), r.Ref, run.Failure{Name: "F"})
	},
	"interrupted": func(f *fixture, _ run.Run, _ *run.Attempt) error {
		_, err := f.runs.Create(f.t.Context(), f.ref, say("next", run.Interrupt))
		return err
	},
}

// in creates a run and brings it into a status.
func (f *fixture) in(status run.Status) (run.Run, *run.Attempt) {
	f.t.Helper()
	r := f.create("x", run.Enqueue)
	if status == run.Pending {
		return r, nil
	}
	a := f.claim(r)
	if status == run.Interrupted {
		f.create("y", run.Interrupt)
	} else if status != run.Running {
		if err := finishAs(status)(f, r, a); err != nil {
			f.t.Fatal(err)
		}
	}
	if got := f.get(r).Status; got != status {
		f.t.Fatalf("got status %s, want %s", got, status)
	}
	return r, a
}

// TestTransitions tries to bring a run from every status to every other status.
func TestTransitions(t *testing.T) {
	t.Parallel()
	want := map[run.Status]map[string]run.Status{
		run.Pending: {
			"running (claim)": run.Running, "error (fail)": run.Error, "interrupted": run.Interrupted,
			"success": run.Pending, "error": run.Pending, "timeout": run.Pending,
		},
		run.Running: {
			"running (claim)": run.Running, "error (fail)": run.Error, "interrupted": run.Interrupted,
			"success": run.Success, "error": run.Error, "timeout": run.Timeout,
		},
	}
	for _, from := range run.ShownStatuses {
		for name, do := range acts {
			t.Run(string(from)+" to "+name, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				r, a := f.in(from)
				before, expected := f.get(r), from
				if !from.Final() {
					expected = want[from][name]
				}
				err := do(f, r, a)
				if err != nil && !errors.Is(err, run.ErrFenced) && !errors.Is(err, run.ErrNothingToDo) {
					t.Fatal(err)
				}
				after := f.get(r)
				if after.Status != expected {
					t.Errorf("got status %s, want %s", after.Status, expected)
				}
				if from.Final() {
					if diff := cmp.Diff(before, after, cmp.AllowUnexported(run.Input{})); diff != "" {
						t.Errorf("a run that was over changed (-before +after):\n%s", diff)
					}
				}
			})
		}
	}
}

func TestFinalStatuses(t *testing.T) {
	t.Parallel()
	want := []run.Status{run.Success, run.Error, run.Timeout, run.Interrupted}
	got := slices.DeleteFunc(slices.Clone(run.ShownStatuses), func(s run.Status) bool { return !s.Final() })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("final statuses (-want +got):\n%s", diff)
	}
}

func TestListFiltersByTheStatusThatARunShows(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("1")
	f.create("2", run.Enqueue)
	f.create("3", run.Enqueue)
	f.create("4", run.Interrupt)
	f.create("5", run.Enqueue)
	f.wantFenced(a.Flush(t.Context()))
	for status, want := range map[run.Status]int{run.Interrupted: 3, run.Pending: 2, run.Running: 0, "": 5} {
		listed, _, err := f.runs.List(t.Context(), f.ref, run.Filter{Status: status, Window: windowOf(10)})
		check.Must(t, err)
		if len(listed) != want {
			t.Errorf("status %q: got %d runs, want %d", status, len(listed), want)
		}
		if !slices.IsSortedFunc(listed, func(a, b run.Run) int { return strings.Compare(b.Run, a.Run) }) {
			t.Errorf("status %q: not newest first", status)
		}
	}
}

// TestARunIsCreatedWhileItsThreadIsListed creates a run that goes before a delayed run: no
// list says that the delayed run has superseded the new run.
func TestARunIsCreatedWhileItsThreadIsListed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.started("first")
	f.create("overtaken", run.Enqueue)
	waits := say("waits", run.Interrupt)
	waits.After = time.Hour
	_, err := f.runs.Create(t.Context(), f.ref, waits)
	f.must(err)
	f.table.beforeQuery(func() { f.create("next", run.Enqueue) })
	listed, _, err := f.runs.List(t.Context(), f.ref, run.Filter{Window: windowOf(10)})
	f.must(err)
	statuses := []run.Status{}
	for _, r := range listed {
		statuses = append(statuses, r.Status)
	}
	if diff := cmp.Diff([]run.Status{run.Pending, run.Pending, run.Interrupted, run.Interrupted}, statuses); diff != "" {
		t.Errorf("statuses, newest first (-want +got):\n%s", diff)
	}
}

// TestAnUpdateThatEndsTheGraphOfAFailedRun leaves the failure to be seen: it only ends a wait.
func TestAnUpdateThatEndsTheGraphOfAFailedRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, _ := f.started("first")
	f.must(f.runs.Fail(t.Context(), r.Ref, run.Failure{Name: "E"}))
	e, err := f.threads.Edit(t.Context(), f.thread(), thread.Newest)
	f.must(err)
	f.must(e.Fold("agent", []graph.StateUpdate{{Values: json.RawMessage(`{}`), AsNode: thread.EndNode}}))
	f.must(e.Commit(t.Context()))
	if got := f.thread().IdleView.Status; got != thread.StatusError {
		t.Errorf("the thread is %s, want %s", got, thread.StatusError)
	}
}
