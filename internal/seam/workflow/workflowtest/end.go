package workflowtest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/slipway-run/slipway/internal/seam/workflow"
)

var stopCases = []testCase{
	{"an execution is stopped in a Task", calls, func(f *fixture) {
		f.answer(hangs)
		f.start("e1", `{}`)
		f.await()
		f.stop("e1", "no longer wanted")
		f.wantAborted("e1", "no longer wanted")
		f.wantCalls(1)
	}},
	{"an execution is stopped in a Wait", waits, func(f *fixture) {
		f.start("e1", `{}`)
		f.stop("e1", "no longer wanted")
		f.wantAborted("e1", "no longer wanted")
	}},
	{"an execution is stopped without a cause", waits, func(f *fixture) {
		f.start("e1", `{}`)
		f.stop("e1", "")
		f.wantAborted("e1", "")
	}},
	{"stopping twice keeps the first cause", waits, func(f *fixture) {
		f.start("e1", `{}`)
		f.stop("e1", "first")
		stopped := f.describe("e1").Stopped
		f.stop("e1", "second")
		f.wantAborted("e1", "first")
		if again := f.describe("e1").Stopped; !again.Equal(stopped) {
			f.Errorf("it stopped at %v, then at %v", stopped, again)
		}
	}},
	{"stopping after the end does nothing", passes, func(f *fixture) {
		f.start("e1", `1`)
		f.ended("e1")
		f.stop("e1", "too late")
		f.want(f.describe("e1"), workflow.Succeeded, `1`, "")
	}},
	{"what was stopped does not start again", calls, func(f *fixture) {
		f.answer(hangs)
		f.start("e1", `{}`)
		f.await()
		f.stop("e1", "first")
		f.start("e1", `{}`)
		f.wantAborted("e1", "first")
		f.wantCalls(1)
	}},
	{"a stop and the end meet in one of the two", calls, func(f *fixture) {
		var both sync.WaitGroup
		for i := range 20 {
			both.Go(func() {
				name := fmt.Sprint("e", i)
				if err := f.Start(f.Context(), machine, name, []byte(`{}`)); err != nil {
					f.Error(err)
				}
				if err := f.Stop(f.Context(), machine, name, ""); err != nil {
					f.Error(err)
				}
			})
		}
		both.Wait()
		for i := range 20 {
			if e := f.describe(fmt.Sprint("e", i)); e.Status == workflow.Running || e.Status == workflow.Succeeded != (e.Output != nil) {
				f.Errorf("got %+v, want it succeeded or aborted", e)
			}
		}
	}},
	{"an execution that is not known is not found", passes, func(f *fixture) {
		for _, m := range []workflow.Machine{machine, "x"} {
			if err := f.Stop(f.Context(), m, "e1", ""); !errors.Is(err, workflow.ErrNotFound) {
				f.Errorf("stop in machine %s: got %v, want %v", m, err, workflow.ErrNotFound)
			}
			if _, err := f.Describe(f.Context(), m, "e1"); !errors.Is(err, workflow.ErrNotFound) {
				f.Errorf("describe in machine %s: got %v, want %v", m, err, workflow.ErrNotFound)
			}
		}
	}},
}

func (f *fixture) wantAborted(name, cause string) {
	f.Helper()
	e := f.describe(name)
	f.want(e, workflow.Aborted, "", "")
	if e.Cause != cause || e.Stopped.Before(e.Started) {
		f.Errorf("got cause %q and stop at %v, want %q and one after %v", e.Cause, e.Stopped, cause, e.Started)
	}
}

var describeCases = []testCase{
	{"one that runs has neither output nor end", waits, func(f *fixture) {
		f.start("e1", `{"a":1}`)
		e := f.describe("e1")
		if e.Started.IsZero() {
			f.Error("it has no start")
		}
		if e.Machine != machine || e.Name != "e1" || e.Status != workflow.Running || string(e.Input) != `{"a":1}` ||
			e.Output != nil || !e.Stopped.IsZero() || e.Error != "" || e.Cause != "" {
			f.Errorf("got %+v", e)
		}
	}},
	{"one that succeeded has an output", passes, func(f *fixture) {
		f.start("e1", `{"a":1}`)
		e := f.ended("e1")
		f.want(e, workflow.Succeeded, `{"a":1}`, "")
		if e.Machine != machine || e.Name != "e1" || string(e.Input) != `{"a":1}` || e.Cause != "" || e.Started.IsZero() || e.Stopped.Before(e.Started) {
			f.Errorf("got %+v", e)
		}
	}},
	{"one that a Fail ended has its error and cause", `{"StartAt": "A", "States": {"A": {"Type": "Fail", "Error": "Broken", "Cause": "It \"broke\"."}}}`, func(f *fixture) {
		f.start("e1", `1`)
		e := f.ended("e1")
		f.want(e, workflow.Failed, "", "Broken")
		if e.Cause != `It "broke".` || e.Stopped.IsZero() {
			f.Errorf("got cause %q and stop at %v", e.Cause, e.Stopped)
		}
	}},
	{"one that data do not fit failed", `{"StartAt": "A", "States": {"A": {"Type": "Wait", "TimestampPath": "$.missing", "End": true}}}`, func(f *fixture) {
		f.start("e1", `{}`)
		f.want(f.ended("e1"), workflow.Failed, "", "States.Runtime")
	}},
	{"one that took too long is timed out", `{"StartAt": "A", "TimeoutSeconds": 1, "States": {"A": {"Type": "Wait", "Seconds": 3600, "End": true}}}`, func(f *fixture) {
		f.start("e1", `{}`)
		f.want(f.ended("e1"), workflow.TimedOut, "", "States.Timeout")
	}},
}
