package run_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/agent/run"
)

// TestAWaitingRunSaysWhy asks for the explanation of runs that wait: for their time, for another
// run, and for a worker.
func TestAWaitingRunSaysWhy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	want := func(when string, r run.Run, cause string, mends bool) {
		t.Helper()
		got, err := f.runs.Explain(t.Context(), r.Ref)
		f.must(err)
		if !strings.HasPrefix(got.Cause, cause) || (cause == "") != (got.Cause == "") || mends != (got.Remedy != "") {
			t.Errorf("%s: the cause is %q, the remedy %q, want %q", when, got.Cause, got.Remedy, cause)
		}
	}
	first, second := f.create("1", run.Enqueue), f.create("2", run.Enqueue)
	f.hand.move(9 * time.Second)
	want("a new run", first, "", false)
	want("a queued run", second, "The run waits for another run of its thread: "+first.Run+".", false)
	f.hand.move(time.Second)
	want("a run without a worker", first, "NO_CAPACITY: ", true)
	f.rescue(time.Minute)
	want("after reconcile has looked at it", first, "NO_CAPACITY: ", true)
	a := f.claim(first)
	want("a run with a worker", first, "", false)
	f.finish(a)
	want("a run that has ended", first, "", false)
	want("the next run without a worker", second, "NO_CAPACITY: ", true)
	f.finish(f.claim(second))

	later := say("3", run.Enqueue)
	later.After = time.Hour
	delayed, err := f.runs.Create(t.Context(), f.ref, later)
	f.must(err)
	want("a delayed run", delayed, "The run is delayed until ", false)
	f.hand.move(time.Hour + time.Second)
	want("a run that has become due", delayed, "", false)
	f.hand.move(time.Minute)
	want("a due run without a worker", delayed, "NO_CAPACITY: ", true)
}

// TestARunWhoseAgentWasKilledNamesTheMemory: the log of an agent that was killed does not say why.
func TestARunWhoseAgentWasKilledNamesTheMemory(t *testing.T) {
	t.Parallel()
	for _, name := range []string{run.FailureAgentUnavailable, run.FailureAttemptsExhausted} {
		f := newFixture(t)
		r := f.create("1", run.Enqueue)
		f.must(f.claim(r).Finish(t.Context(), run.Outcome{Status: run.Error, Failure: &run.Failure{Name: name, Message: "The agent was killed."}}))
		got, err := f.runs.Explain(t.Context(), r.Ref)
		f.must(err)
		if got.Cause != "The agent was killed." || !strings.Contains(got.Remedy, "resource_spec") || !strings.Contains(got.Remedy, "resource-tiers") {
			t.Errorf("%s: the cause is %q, the remedy %q", name, got.Cause, got.Remedy)
		}
	}
}
