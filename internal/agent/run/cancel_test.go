package run_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/match"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// rests are the ways in which a run leaves its thread.
var rests = map[string]struct {
	end        func(*fixture, *run.Attempt)
	status     thread.Status
	interrupts string
}{
	"after a success": {(*fixture).finish, thread.StatusIdle, "{}"},
	"after an error": {func(f *fixture, a *run.Attempt) {
		f.must(a.Finish(f.t.Context(), run.Outcome{Status: run.Error, Failure: &run.Failure{Name: "E"}, ByAgent: true}))
	}, thread.StatusError, "{}"},
	"after a cancel": {func(f *fixture, a *run.Attempt) {
		f.must(f.runs.Cancel(f.t.Context(), a.Run.Ref, run.ActionInterrupt))
	}, thread.StatusInterrupted, "{}"},
	"with a question": {(*fixture).ask, thread.StatusInterrupted, asked},
	"with a question in a checkpoint": {func(f *fixture, a *run.Attempt) {
		tasks := json.RawMessage(`[{"id":"t1","name":"ask","interrupts":[{"id":"i","value":"?"}]}]`)
		f.must(a.Checkpoint(graph.Checkpoint{ID: "c1", Values: json.RawMessage(`{"n":1}`), Next: []string{"ask"}, Tasks: tasks, Data: []byte("data")}))
		f.ask(a)
	}, thread.StatusInterrupted, asked},
}

const asked = `{"t1":[{"id":"i","value":"?"}]}`

// ask ends a run with a question.
func (f *fixture) ask(a *run.Attempt) {
	f.t.Helper()
	f.must(a.Finish(f.t.Context(), run.Outcome{Status: run.Success, Interrupts: json.RawMessage(asked)}))
}

// resume creates a run that answers the questions of the thread. It is refused if its answer is
// strict and there are no questions.
func (f *fixture) resume(strategy run.Strategy, strict bool) run.Run {
	f.t.Helper()
	r, err := f.runs.Create(f.t.Context(), f.ref, run.Request{
		Graph: "agent", Strategy: strategy, StrictResume: strict, Payload: run.Payload{Command: json.RawMessage(`{"resume":{"i":"yes"}}`)},
	})
	f.must(err)
	return r
}

// cancels are the ways in which a run ends that never began and leaves nothing.
var cancels = map[string]func(*fixture, run.Run) error{
	"cancelled": func(f *fixture, r run.Run) error { return f.runs.Cancel(f.t.Context(), r.Ref, run.ActionInterrupt) },
	"rolled back": func(f *fixture, r run.Run) error {
		return f.runs.Cancel(f.t.Context(), r.Ref, run.ActionRollback)
	},
	"taken":        func(f *fixture, r run.Run) error { return f.runs.CancelTaken(f.t.Context(), r.Ref) },
	"disconnected": func(f *fixture, r run.Run) error { return f.runs.CancelOnDisconnect(f.t.Context(), r.Ref) },
	"cancelled with its thread": func(f *fixture, _ run.Run) error {
		_, err := f.runs.CancelThread(f.t.Context(), f.ref, run.ActionInterrupt)
		return err
	},
	"rolled back with its thread": func(f *fixture, _ run.Run) error {
		_, err := f.runs.CancelThread(f.t.Context(), f.ref, run.ActionRollback)
		return err
	},
}

// wantRest checks what the thread shows.
func (f *fixture) wantRest(name string, status thread.Status, interrupts string) {
	f.t.Helper()
	if got := f.thread(); got.Status != status || string(got.Interrupts) != interrupts {
		f.t.Errorf("%s: the thread is %s with %s, want %s with %s", name, got.Status, got.Interrupts, status, interrupts)
	}
}

// TestAThreadRestsAsItWasBeforeARunThatNeverBegan checks that the thread shows its status and its
// questions again, and the run that they are of, and that an answer is accepted.
func TestAThreadRestsAsItWasBeforeARunThatNeverBegan(t *testing.T) {
	t.Parallel()
	for how, rest := range rests {
		for what, cancel := range cancels {
			f, name := newFixture(t), how+", a run is "+what
			_, a := f.started("first")
			rest.end(f, a)
			f.wantRest(how, rest.status, rest.interrupts)
			answer := f.resume(run.Enqueue, false)
			f.wantRest("busy", thread.StatusBusy, "{}")
			f.must(cancel(f, answer))
			f.wantRest(name, rest.status, rest.interrupts)
			f.messages() // this seals the thread
			f.wantRest(name+" and sealed", rest.status, rest.interrupts)
			if got := f.thread().IdleView.Run; got != a.Run.Run {
				t.Errorf("%s: the status tells of run %s, want %s", name, got, a.Run.Run)
			}
			if rest.interrupts == asked {
				f.resume(run.Enqueue, true)
			}
		}
	}
}

// TestTheInputOfARunThatNeverBeganPassesOverQuestions checks that a thread waits for nothing when
// the input of a client that went away is in its state.
func TestTheInputOfARunThatNeverBeganPassesOverQuestions(t *testing.T) {
	t.Parallel()
	for how, rest := range rests {
		f := newFixture(t)
		_, a := f.started("first")
		rest.end(f, a)
		f.must(f.runs.CancelOnDisconnect(t.Context(), f.create("second", run.Enqueue).Ref))
		f.wantRest(how, thread.StatusIdle, "{}")
	}
}

// TestARolledBackAnswerLeavesTheQuestion checks that the question is open again, also if the answer
// was at work.
func TestARolledBackAnswerLeavesTheQuestion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("first")
	f.ask(a)
	answer := f.resume(run.Enqueue, true)
	b := f.claim(answer)
	f.answer(b, "m", "said")
	f.flush(b)
	f.must(f.runs.Cancel(t.Context(), answer.Ref, run.ActionRollback))
	f.wantRest("rolled back", thread.StatusInterrupted, asked)
}

// TestARunThatNeverBeganLeavesItsInputOnlyIfItsClientIsLost cancels the active run, or a queued
// run, for each reason before a worker has claimed it.
func TestARunThatNeverBeganLeavesItsInputOnlyIfItsClientIsLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cancel func(*run.Store, run.Run) error
		want   []string
	}{
		"by request": {
			cancel: func(s *run.Store, r run.Run) error { return s.Cancel(t.Context(), r.Ref, run.ActionInterrupt) },
		},
		"by taking": {
			cancel: func(s *run.Store, r run.Run) error { return s.CancelTaken(t.Context(), r.Ref) },
		},
		"by disconnect": {
			cancel: func(s *run.Store, r run.Run) error { return s.CancelOnDisconnect(t.Context(), r.Ref) },
			want:   []string{"human cancelled"},
		},
	} {
		for _, queued := range []bool{false, true} {
			f, want := newFixture(t), []string{}
			var active *run.Attempt
			if queued {
				_, active = f.started("active")
				want = append(want, "human active")
			}
			f.must(c.cancel(f.runs, f.create("cancelled", run.Enqueue)))
			if queued {
				f.finish(active)
			}
			if diff := cmp.Diff(append(want, c.want...), f.messages()); diff != "" {
				t.Errorf("%s, queued: %t: messages (-want +got):\n%s", name, queued, diff)
			}
		}
	}
}

// TestARunIsTakenUpWhileItIsCancelled lets a worker take up an answer that a cancel has read as
// never begun: the question is answered.
func TestARunIsTakenUpWhileItIsCancelled(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"cancelled", "taken", "disconnected", "cancelled with its thread"} {
		f := newFixture(t)
		_, a := f.started("first")
		f.ask(a)
		answer := f.resume(run.Enqueue, true)
		f.table.beforeNext(func() { f.claim(answer) })
		f.must(cancels[what](f, answer))
		f.wantRest(what, thread.StatusInterrupted, "{}")
	}
}

// TestAThreadRestsAsTheRunBeforeLeftIt checks what a thread that asked a question shows when its
// active run never begins, and what came before this run is not sealed yet.
func TestAThreadRestsAsTheRunBeforeLeftIt(t *testing.T) {
	t.Parallel()
	for before, c := range map[string]struct {
		// next ends what comes before the run, and returns the run.
		next       func(*fixture) run.Run
		status     thread.Status
		interrupts string
	}{
		"an answer at work was superseded": {func(f *fixture) run.Run {
			f.claim(f.resume(run.Enqueue, true))
			return f.resume(run.Interrupt, false)
		}, thread.StatusInterrupted, "{}"},
		"an answer at work was cancelled": {func(f *fixture) run.Run {
			answer := f.resume(run.Enqueue, true)
			f.claim(answer)
			next := f.resume(run.Enqueue, false)
			f.must(f.runs.Cancel(f.t.Context(), answer.Ref, run.ActionInterrupt))
			return next
		}, thread.StatusInterrupted, "{}"},
		"an answer at work was removed": {func(f *fixture) run.Run {
			f.claim(f.resume(run.Enqueue, true))
			return f.resume(run.Rollback, false)
		}, thread.StatusInterrupted, asked},
		"an answer that never began was superseded": {func(f *fixture) run.Run {
			f.resume(run.Enqueue, true)
			return f.resume(run.Interrupt, false)
		}, thread.StatusInterrupted, asked},
		"an answer that never began was cancelled": {func(f *fixture) run.Run {
			answer := f.resume(run.Enqueue, true)
			next := f.resume(run.Enqueue, false)
			f.must(f.runs.Cancel(f.t.Context(), answer.Ref, run.ActionInterrupt))
			return next
		}, thread.StatusInterrupted, asked},
		"an input that no worker took was superseded": {func(f *fixture) run.Run {
			f.create("input", run.Enqueue)
			return f.resume(run.Interrupt, false)
		}, thread.StatusIdle, "{}"},
		"an answer has failed": {func(f *fixture) run.Run {
			a := f.claim(f.resume(run.Enqueue, true))
			next := f.resume(run.Enqueue, false)
			f.must(a.Finish(f.t.Context(), run.Outcome{Status: run.Error, Failure: &run.Failure{Name: "E"}}))
			return next
		}, thread.StatusError, "{}"},
		"an answer has asked, and the client behind it is gone": {func(f *fixture) run.Run {
			a := f.claim(f.resume(run.Enqueue, true))
			gone := f.create("gone", run.Enqueue)
			f.must(f.runs.CancelOnDisconnect(f.t.Context(), gone.Ref))
			f.ask(a)
			return f.resume(run.Enqueue, true)
		}, thread.StatusInterrupted, asked},
	} {
		for what, cancel := range cancels {
			f, name := newFixture(t), before+", the next run is "+what
			_, a := f.started("first")
			f.ask(a)
			f.must(cancel(f, c.next(f)))
			f.wantRest(name, c.status, c.interrupts)
			f.messages() // this seals the thread
			f.wantRest(name+" and sealed", c.status, c.interrupts)
		}
	}
}

// TestTheRunsOfAScopeAreCancelled cancels the runs of a deployment in a scope. A run that waits
// begins only if it is not cancelled itself.
func TestTheRunsOfAScopeAreCancelled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		begun   bool
		scope   run.CancelScope
		want    []run.Status
		started int
	}{
		"those that wait, if the first waits, too": {false, run.CancelPending, []run.Status{run.Interrupted, run.Interrupted, run.Interrupted}, 1},
		"those that wait behind one that runs":     {true, run.CancelPending, []run.Status{run.Running, run.Interrupted, run.Interrupted}, 1},
		"the one that runs":                        {true, run.CancelRunning, []run.Status{run.Interrupted, run.Pending, run.Pending}, 2},
		"those that run, but all wait":             {false, run.CancelRunning, []run.Status{run.Pending, run.Pending, run.Pending}, 1},
		"all":                                      {true, run.CancelAll, []run.Status{run.Interrupted, run.Interrupted, run.Interrupted}, 1},
	} {
		f := newFixture(t)
		first, second, third := f.create("1", run.Enqueue), f.create("2", run.Enqueue), f.create("3", run.Enqueue)
		if c.begun {
			f.claim(first)
		}
		_, err := f.runs.CancelDeployment(t.Context(), "w", "d", c.scope, run.ActionInterrupt, match.Filter{})
		f.must(err)
		if diff := cmp.Diff(c.want, f.statuses(first, second, third)); diff != "" {
			t.Errorf("%s: statuses (-want +got):\n%s", name, diff)
		}
		if got := len(f.engine.names()); got != c.started {
			t.Errorf("%s: %d runs were started, want %d", name, got, c.started)
		}
	}
}
