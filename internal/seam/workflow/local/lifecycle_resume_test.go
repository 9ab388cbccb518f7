package local_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestResumeKeepsTime cuts an execution off half an hour after its start and continues ten
// minutes later: an execution that takes an hour must still take exactly an hour.
func TestResumeKeepsTime(t *testing.T) {
	t.Parallel()
	task := `"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName": "work", "Payload.$": "$"}`
	input := map[string]any{"a": "x"}
	for name, c := range map[string]struct {
		definition    string
		before, after []behaviour
		want          outcome
	}{
		"wait": {
			definition: `{"StartAt": "P", "States": {"P": {"Type": "Choice", "Choices": [{"Variable": "$.a", "StringEquals": "x", "Next": "A"}], "Default": "P"}, "A": {"Type": "Wait", "Seconds": 3600, "End": true}}}`,
			want:       outcome{Status: workflow.Succeeded, Output: input},
		},
		"wait after a wait": {
			definition: `{"StartAt": "P", "States": {"P": {"Type": "Wait", "Seconds": 1200, "Next": "A"}, "A": {"Type": "Wait", "Seconds": 2400, "End": true}}}`,
			want:       outcome{Status: workflow.Succeeded, Output: input},
		},
		"wait after a task": {
			definition: `{"StartAt": "A", "States": {"A": {` + task + `, "ResultPath": null, "Next": "B"}, "B": {"Type": "Wait", "Seconds": 3600, "End": true}}}`,
			before:     []behaviour{{Return: []byte(`1`)}},
			want:       outcome{Status: workflow.Succeeded, Output: input, Calls: []any{input}},
		},
		"retry delay": {
			definition: `{"StartAt": "A", "States": {"A": {` + task + `, "Retry": [{"ErrorEquals": ["E"], "MaxAttempts": 1, "IntervalSeconds": 3600}], "ResultPath": null, "End": true}}}`,
			before:     []behaviour{{Error: &workflow.TaskError{Name: "E"}}},
			after:      []behaviour{{Return: []byte(`1`)}},
			want:       outcome{Status: workflow.Succeeded, Output: input, Calls: []any{input, input}},
		},
		"retry count": {
			definition: `{"StartAt": "A", "States": {"A": {` + task + `, "Retry": [{"ErrorEquals": ["E"], "MaxAttempts": 1, "IntervalSeconds": 3600}], "End": true}}}`,
			before:     []behaviour{{Error: &workflow.TaskError{Name: "E"}}},
			after:      []behaviour{{Error: &workflow.TaskError{Name: "E"}}},
			want:       outcome{Status: workflow.Failed, Error: "E", Cause: `{"errorMessage":"","errorType":"E"}`, Calls: []any{input, input}},
		},
		"attempt's timeout": {
			definition: `{"StartAt": "A", "States": {"A": {` + task + `, "TimeoutSeconds": 3600, "End": true}}}`,
			before:     []behaviour{{Hang: true}},
			after:      []behaviour{{Hang: true}},
			want:       outcome{Status: workflow.Failed, Error: "States.Timeout", Calls: []any{input, input}},
		},
		"machine's timeout": {
			definition: `{"StartAt": "A", "TimeoutSeconds": 3600, "States": {"A": {` + task + `, "End": true}}}`,
			before:     []behaviour{{Hang: true}},
			after:      []behaviour{{Hang: true}},
			want:       outcome{Status: workflow.TimedOut, Error: "States.Timeout", Cause: "The execution took longer than the machine's TimeoutSeconds.", Calls: []any{input, input}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, tb *outsideTable) {
				function := &script{t: t, behaviours: append(c.before, c.after...), over: make(chan struct{})}
				s := setup{table: tb, definition: c.definition, functions: works(function.call)}
				first, _ := s.engine(t)
				start(t, first, "e1", `{"a": "x"}`)
				<-time.After(30 * time.Minute)
				cutOff(first)
				<-time.After(10 * time.Minute)
				second, h := s.engine(t)
				check.Must(t, second.Resume(t.Context()))
				h.await("e1")
				e := describe(t, second, "e1")
				got := outcome{Status: e.Status, Output: decode(t, e.Output), Error: e.Error, Cause: e.Cause, Calls: function.calls(), Took: e.Stopped.Sub(e.Started).String()}
				c.want.Took = "1h0m0s"
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("outcome (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestResumeAfterADeadline checks that a step that became due while no process ran happens at
// once.
func TestResumeAfterADeadline(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, tb *outsideTable) {
		s := setup{table: tb, definition: waits}
		first, _ := s.engine(t)
		start(t, first, "e1", `{}`)
		cutOff(first)
		<-time.After(2 * time.Hour)
		second, h := s.engine(t)
		check.Must(t, second.Resume(t.Context()))
		h.await("e1")
		if got := describe(t, second, "e1"); got.Stopped.Sub(got.Started) != 2*time.Hour {
			t.Errorf("it ended at %v, want after two hours", got.Stopped)
		}
	})
}

// TestResumeManyPages continues more executions than one page of the table's list holds, and
// only the running ones.
func TestResumeManyPages(t *testing.T) {
	t.Parallel()
	const n = 1100
	tb := fileTable(t)
	first, _ := setup{table: tb, definition: waits}.engine(t)
	var starts sync.WaitGroup
	for i := range n {
		starts.Go(func() {
			if err := first.Start(t.Context(), "m", fmt.Sprintf("e%04d", i), []byte(`{}`)); err != nil {
				t.Error(err)
			}
		})
	}
	starts.Wait()
	check.Must(t, first.Stop(t.Context(), "m", "e0000", ""))
	cutOff(first)
	later := func() time.Time { return time.Now().Add(time.Hour) }
	second, h := setup{table: tb, definition: waits, now: later}.engine(t)
	check.Must(t, second.Resume(t.Context()))
	for i := 1; i < n; i++ {
		h.await(fmt.Sprintf("e%04d", i))
	}
	if got := h.types("e0000"); got != nil {
		t.Errorf("the stopped execution went on: %v", got)
	}
}

// TestResumeTwice checks that executions that run in this process are left alone.
func TestResumeTwice(t *testing.T) {
	t.Parallel()
	g := newGate()
	e, h := setup{table: fileTable(t), definition: oneTask, functions: works(g.call)}.engine(t)
	start(t, e, "e1", `{}`)
	<-g.entered
	for range 2 {
		check.Must(t, e.Resume(t.Context()))
	}
	g.through <- struct{}{}
	h.await("e1")
	check.Must(t, e.Resume(t.Context()))
	e.Close(t.Context())
	if got := len(g.entered); got != 0 {
		t.Errorf("got %d more calls, want 0", got)
	}
}

// TestStartGoesOn checks that Start continues an execution that an earlier engine left
// running, even without Resume.
func TestStartGoesOn(t *testing.T) {
	t.Parallel()
	tb := fileTable(t)
	first, _ := setup{table: tb, definition: waits}.engine(t)
	start(t, first, "e1", `{"a": 1}`)
	cutOff(first)
	later := func() time.Time { return time.Now().Add(time.Hour) }
	second, h := setup{table: tb, definition: waits, now: later}.engine(t)
	start(t, second, "e1", `{"a": 2}`)
	h.await("e1")
	if got, want := string(describe(t, second, "e1").Output), `{"a":1}`; got != want {
		t.Errorf("got output %s, want %s", got, want)
	}
}

// TestResumeWithoutTheState checks executions whose definition was changed while they ran.
func TestResumeWithoutTheState(t *testing.T) {
	t.Parallel()
	tb := fileTable(t)
	first, _ := setup{table: tb, definition: waits}.engine(t)
	start(t, first, "e1", `{}`)
	cutOff(first)
	second, h := setup{table: tb, definition: `{"StartAt": "B", "States": {"B": {"Type": "Succeed"}}}`}.engine(t)
	check.Must(t, second.Resume(t.Context()))
	h.await("e1")
	got := describe(t, second, "e1")
	if got.Status != workflow.Failed || got.Error != "States.Runtime" || got.Cause != "The machine has no state 'A'." {
		t.Errorf("got %+v, want it failed with States.Runtime", got)
	}
}

// TestTwoEngines lets two engines run one execution: the second one to write gives up, and the
// execution ends only once.
func TestTwoEngines(t *testing.T) {
	t.Parallel()
	tb, slow := fileTable(t), newGate()
	first, before := setup{table: tb, definition: twoTasks, functions: works(slow.call)}.engine(t)
	start(t, first, "e1", `{}`)
	<-slow.entered
	var fast atomic.Int64
	second, after := setup{table: tb, definition: twoTasks, functions: works(counting(&fast))}.engine(t)
	check.Must(t, second.Resume(t.Context()))
	after.await("e1")
	ended := describe(t, second, "e1")
	slow.through <- struct{}{}
	first.Close(context.Background())
	if got := len(slow.entered); got != 0 {
		t.Errorf("the engine that lost called the function %d more times", got)
	}
	if types := before.types("e1"); types[len(types)-1] != "TaskStateEntered" {
		t.Errorf("the engine that lost went on to %v", types)
	}
	if diff := cmp.Diff(ended, describe(t, second, "e1")); diff != "" {
		t.Errorf("the engine that lost changed the execution (-before +after):\n%s", diff)
	}
}
