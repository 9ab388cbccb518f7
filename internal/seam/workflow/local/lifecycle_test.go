package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// oneTask calls the function once; twoTasks calls it for A and then for B.
const (
	oneTask = `{"StartAt": "A", "States": {
		"A": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName": "work", "Payload": "A"}, "End": true}}}`
	twoTasks = `{"StartAt": "A", "States": {
		"A": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName": "work", "Payload": "A"}, "Next": "B"},
		"B": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName": "work", "Payload": "B"}, "End": true}}}`
	waits = `{"StartAt": "A", "States": {"A": {"Type": "Wait", "Seconds": 3600, "End": true}}}`
)

func fileTable(t *testing.T) table.Table {
	t.Helper()
	return fixtures.Table(t)
}

// counting is a function that counts its calls.
func counting(calls *atomic.Int64) workflow.TaskFunc {
	return func(context.Context, json.RawMessage) (json.RawMessage, error) {
		calls.Add(1)
		return []byte(`{}`), nil
	}
}

func works(function workflow.TaskFunc) map[string]workflow.TaskFunc {
	return map[string]workflow.TaskFunc{"work": function}
}

// failingTable refuses the next transactions.
type failingTable struct {
	table.Table
	refuse atomic.Int64
}

var errDiskFull = errors.New("disk full")

func (tb *failingTable) Transact(ctx context.Context, writes ...table.Write) error {
	if tb.refuse.Add(-1) >= 0 {
		return errDiskFull
	}
	return tb.Table.Transact(ctx, writes...)
}

// TestStartTogetherWithAFailingOne checks that callers that wait for a failing Start do not
// return its failure as their own.
func TestStartTogetherWithAFailingOne(t *testing.T) {
	t.Parallel()
	tb := &failingTable{Table: fileTable(t)}
	tb.refuse.Store(3)
	var calls, failures atomic.Int64
	e, h := setup{table: tb, definition: oneTask, functions: works(counting(&calls))}.engine(t)
	var starts sync.WaitGroup
	for range 20 {
		starts.Go(func() {
			err := e.Start(t.Context(), "m", "e1", []byte(`{}`))
			if errors.Is(err, errDiskFull) {
				failures.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	starts.Wait()
	h.await("e1")
	if calls.Load() != 1 || failures.Load() != 3 {
		t.Errorf("got %d calls and %d failures, want 1 and 3", calls.Load(), failures.Load())
	}
}

// TestStartRefusesANameThatIsNotUTF8 is not in the suite, because a client of Step Functions
// would correct such a name.
func TestStartRefusesANameThatIsNotUTF8(t *testing.T) {
	t.Parallel()
	e, _ := setup{table: fileTable(t), definition: waits}.engine(t)
	if err := e.Start(t.Context(), "m", "a\xff", []byte(`{}`)); !errors.Is(err, local.ErrName) {
		t.Errorf("got %v, want %v", err, local.ErrName)
	}
}

func TestStopCancelsTheTask(t *testing.T) {
	t.Parallel()
	entered, cancelled := make(chan struct{}), make(chan struct{})
	e, h := setup{table: fileTable(t), definition: oneTask, functions: works(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		close(entered)
		<-ctx.Done()
		close(cancelled)
		return nil, ctx.Err()
	})}.engine(t)
	start(t, e, "e1", `{}`)
	<-entered
	for range 2 { // the second Stop finds that it has ended and does nothing
		check.Must(t, e.Stop(t.Context(), "m", "e1", "no longer wanted"))
	}
	<-cancelled
	h.await("e1")
	got := describe(t, e, "e1")
	if got.Status != workflow.Aborted || got.Cause != "no longer wanted" || got.Stopped.IsZero() {
		t.Errorf("got %+v, want it aborted", got)
	}
	want := []string{"ExecutionStarted", "TaskStateEntered", "TaskScheduled", "TaskStarted", "ExecutionAborted"}
	if diff := cmp.Diff(want, h.types("e1")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestStopAgainstTheEnd lets stops and the natural end race. history panics if two of them
// report an end.
func TestStopAgainstTheEnd(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	e, h := setup{table: fileTable(t), definition: oneTask, functions: works(counting(&calls))}.engine(t)
	for i := range 100 {
		name := fmt.Sprintf("e%d", i)
		start(t, e, name, `{}`)
		var stops sync.WaitGroup
		for range 2 {
			stops.Go(func() {
				if err := e.Stop(t.Context(), "m", name, ""); err != nil {
					t.Error(err)
				}
			})
		}
		stops.Wait()
		h.await(name)
		types := h.types(name)
		want := map[string]workflow.Status{"ExecutionSucceeded": workflow.Succeeded, "ExecutionAborted": workflow.Aborted}
		if got := describe(t, e, name); got.Status != want[types[len(types)-1]] {
			t.Errorf("%s: got status %s after events %v", name, got.Status, types)
		}
	}
}

func TestStopInAWait(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, tb *outsideTable) {
		e, h := setup{table: tb, definition: waits}.engine(t)
		start(t, e, "e1", `{}`)
		<-time.After(time.Minute)
		check.Must(t, e.Stop(t.Context(), "m", "e1", ""))
		h.await("e1")
		if got := describe(t, e, "e1"); got.Stopped.Sub(got.Started) != time.Minute {
			t.Errorf("it stopped at %v, want after a minute", got.Stopped)
		}
	})
}

// TestEndedExecution checks that an ended execution is no longer listed, stays readable for a
// day, and is then forgotten.
func TestEndedExecution(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, tb *outsideTable) {
		var calls atomic.Int64
		e, h := setup{table: tb, definition: oneTask, functions: works(counting(&calls))}.engine(t)
		start(t, e, "e1", `{}`)
		h.await("e1")
		page, err := tb.Query(t.Context(), keys.RunningExecutions())
		if err != nil || len(page.Items) != 0 {
			t.Errorf("got running executions %v and error %v, want none", page.Items, err)
		}
		tb.setClock(bubbleStart.Add(24*time.Hour - time.Second))
		if got := describe(t, e, "e1"); got.Status != workflow.Succeeded {
			t.Errorf("got status %s, want SUCCEEDED", got.Status)
		}
		tb.setClock(bubbleStart.Add(24 * time.Hour))
		if _, err := e.Describe(t.Context(), "m", "e1"); !errors.Is(err, workflow.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	})
}

// TestEndIsStoredLater checks that an execution waits for a table that refuses to store its end.
func TestEndIsStoredLater(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, outside *outsideTable) {
		tb := &failingTable{Table: outside}
		var calls atomic.Int64
		e, h := setup{table: tb, definition: oneTask, functions: works(func(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
			tb.refuse.Store(3)
			return counting(&calls)(ctx, payload)
		})}.engine(t)
		start(t, e, "e1", `{}`)
		h.await("e1")
		if got := describe(t, e, "e1"); got.Status != workflow.Succeeded || calls.Load() != 1 {
			t.Errorf("got status %s after %d calls, want SUCCEEDED after 1", got.Status, calls.Load())
		}
		if got, want := time.Since(bubbleStart), 700*time.Millisecond; got != want {
			t.Errorf("it was stored after %v, want %v", got, want)
		}
	})
}

func TestFailureIsLogged(t *testing.T) {
	t.Parallel()
	ended := map[string]any{"level": "WARN", "msg": "execution failed", "machine": "m", "name": "e1", "status": "FAILED"}
	for name, failed := range map[string]struct {
		err  error
		want []map[string]any
	}{
		"what was foreseen, without its cause": {
			err: &workflow.TaskError{Name: "Broken", Cause: "secret"}, want: []map[string]any{with(ended, "error", "Broken")},
		},
		"what nobody foresaw": {
			err: errors.New("read thread: disk on fire"), want: []map[string]any{
				{"level": "ERROR", "msg": "task failed", "machine": "m", "name": "e1", "state": "A", "error": "read thread: disk on fire"},
				with(ended, "error", "States.TaskFailed"),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log check.Log
			e, h := setup{table: fileTable(t), definition: oneTask, log: &log, functions: works(func(context.Context, json.RawMessage) (json.RawMessage, error) {
				return nil, failed.err
			})}.engine(t)
			start(t, e, "e1", `{"key": "secret"}`)
			h.await("e1")
			e.Close(t.Context())
			var got []map[string]any
			for line := range strings.Lines(log.String()) {
				var fields map[string]any
				check.Must(t, json.Unmarshal([]byte(line), &fields))
				delete(fields, "time")
				got = append(got, fields)
			}
			if diff := cmp.Diff(failed.want, got); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
}

func with(fields map[string]any, name string, value any) map[string]any {
	fields = maps.Clone(fields)
	fields[name] = value
	return fields
}

func TestChoicesWithoutAnEnd(t *testing.T) {
	t.Parallel()
	e, h := setup{table: fileTable(t), definition: `{"StartAt": "A", "States": {
		"A": {"Type": "Choice", "Choices": [{"Variable": "$.a", "StringEquals": "x", "Next": "A"}], "Default": "B"},
		"B": {"Type": "Succeed"}}}`}.engine(t)
	start(t, e, "e1", `{"a": "x"}`)
	h.await("e1")
	if got := describe(t, e, "e1"); got.Status != workflow.Failed || got.Error != "States.Runtime" {
		t.Errorf("got %s with %s, want FAILED with States.Runtime", got.Status, got.Error)
	}
}

// TestList shows the executions of one machine, both running and ended ones.
func TestList(t *testing.T) {
	t.Parallel()
	e, h := setup{table: fileTable(t), definition: `{"StartAt": "A", "States": {"A": {"Type": "Wait", "TimestampPath": "$", "End": true}}}`}.engine(t)
	start(t, e, "e2", `"9999-01-01T00:00:00Z"`)
	start(t, e, "e1", `"2000-01-01T00:00:00Z"`)
	h.await("e1")
	got, err := e.List(t.Context(), "m")
	check.Must(t, err)
	want := []workflow.Execution{describe(t, e, "e1"), describe(t, e, "e2")}
	if diff := cmp.Diff(want, got); diff != "" || want[0].Status != workflow.Succeeded || want[1].Status != workflow.Running {
		t.Errorf("executions (-want +got):\n%s", diff)
	}
	if none, err := e.List(t.Context(), "n"); err != nil || len(none) != 0 {
		t.Errorf("another machine: got %v and %v", none, err)
	}
}

// overtakingTable changes an execution right after it was read, the given number of times. A
// step that is stored meanwhile has the same effect.
type overtakingTable struct {
	table.Table
	left atomic.Int64
}

func (tb *overtakingTable) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	item, err := tb.Table.Get(ctx, key)
	if err != nil || tb.left.Add(-1) < 0 {
		return item, err
	}
	version := item.Int("version")
	return item, tb.Transact(ctx, table.Update{Key: key, Set: table.Attrs{"version": version + 1}, If: table.Equals("version", version)})
}

// TestStopOvertaken stops an execution that stores steps all the time: Stop recovers from a
// few lost races, and many lost races end in an error.
func TestStopOvertaken(t *testing.T) {
	t.Parallel()
	for overtaken, want := range map[int64]bool{3: true, 1 << 40: false} {
		tb := &overtakingTable{Table: fileTable(t)}
		e, _ := setup{table: tb, definition: waits}.engine(t)
		start(t, e, "e1", `{}`)
		tb.left.Store(overtaken)
		err := e.Stop(t.Context(), "m", "e1", "no longer wanted")
		tb.left.Store(0)
		if stopped := describe(t, e, "e1").Status == workflow.Aborted; (err == nil) != want || stopped != want {
			t.Errorf("overtaken %d times: got error %v and stopped %v, want %v", overtaken, err, stopped, want)
		}
	}
}
