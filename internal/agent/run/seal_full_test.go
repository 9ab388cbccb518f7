package run_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
)

// smallBody is the limit of the states in tests of states that are too large.
const smallBody = 64 << 10

// newSmallFixture makes a thread whose state has the limit smallBody.
func newSmallFixture(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.runs = run.NewStore(run.Config{Table: f.table, Threads: f.threads, Workflow: f.engine, Now: f.hand.now, MaxBody: smallBody})
	return f
}

// large is a text so large that such a state can hold only one copy.
var large = strings.Repeat("x", smallBody*2/3)

// fill puts large into the thread's state.
func (f *fixture) fill() {
	f.t.Helper()
	_, a := f.started("ask")
	f.must(a.Update(run.EventUpdates, json.RawMessage(`{"agent":{"messages":[{"type":"ai","id":"large","content":"`+large+`"}]}}`)))
	f.finish(a)
}

// wantLost checks that the run has the failure StateTooLarge, because a part of it could not
// be kept, and that the thread takes the next run.
func (f *fixture) wantLost(r run.Run, status run.Status) {
	f.t.Helper()
	_, err := f.runs.Seal(f.t.Context(), f.ref)
	f.must(err)
	got := f.get(r)
	if got.Status != status || got.Failure == nil || got.Failure.Name != "StateTooLarge" {
		f.t.Errorf("the run is %s: %v", got.Status, got.Failure)
	}
	next := f.thread().Lock.Run
	if !f.thread().Lock.Busy {
		next = f.create("next", run.Enqueue).Run
	}
	a := f.claim(run.Run{Ref: run.Ref{Ref: f.ref, Run: next}})
	f.answer(a, "answer", "fine")
	f.finish(a)
	if got := f.get(a.Run).Status; got != run.Success {
		f.t.Errorf("the next run ended as %s", got)
	}
}

// TestAnInputThatTheStateCannotHold checks that such an input of a run that never starts is
// lost with a failure, and that the thread goes on.
func TestAnInputThatTheStateCannotHold(t *testing.T) {
	t.Parallel()
	f := newSmallFixture(t)
	f.fill()
	before := f.create("kept", run.Enqueue)
	full, err := f.runs.Create(t.Context(), f.ref, run.Request{Strategy: run.Enqueue, Payload: run.Payload{Input: input(`{"more":"` + large + `x"}`)}})
	f.must(err)
	f.create("next", run.Interrupt)
	f.wantLost(full, run.Interrupted)
	if got := f.get(before); got.Status != run.Interrupted || got.Failure != nil {
		t.Errorf("the run before is %s: %v", got.Status, got.Failure)
	}
}

// TestLeftoversThatTheStateCannotHold checks that a worker cannot end a run with such leftovers,
// and that they are lost with a failure when the run is given up.
func TestLeftoversThatTheStateCannotHold(t *testing.T) {
	t.Parallel()
	f := newSmallFixture(t)
	f.fill()
	r, a := f.started("shows")
	a.Show(run.EventMessages, json.RawMessage(`[{"id":"m","type":"AIMessageChunk","content":"`+large+`x"},{}]`))
	f.flush(a)
	err := a.Finish(t.Context(), run.Outcome{Status: run.Timeout, Failure: &run.Failure{Name: "E"}})
	if _, full := errors.AsType[*thread.TooLargeError](err); !full {
		t.Errorf("the worker ends the run: error %v", err)
	}
	f.must(f.runs.Fail(t.Context(), r.Ref, run.Failure{Name: "StateTooLarge"}))
	f.wantLost(r, run.Error)
}
