package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
)

// unstored is a machine of Config.Unstored whose Task calls work.
func unstored(tb *outsideTable, work workflow.TaskFunc) setup {
	return setup{table: tb, functions: works(work), unstored: []workflow.Machine{"m"}, definition: `{"StartAt": "Work", "States": {
		"Work": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName": "work", "Payload.$": "$"},
			"Retry": [{"ErrorEquals": ["Later"], "IntervalSeconds": 60, "MaxAttempts": 5}], "End": true}}}`}
}

// wantExecution checks the status of an execution, "" for none.
func wantExecution(t *testing.T, e workflow.Engine, name string, want workflow.Status) {
	t.Helper()
	got, err := e.Describe(t.Context(), "m", name)
	if errors.Is(err, workflow.ErrNotFound) {
		err = nil
	}
	if check.Must(t, err); got.Status != want {
		t.Errorf("execution %s: got status %q, want %q", name, got.Status, want)
	}
}

func TestUnstoredExecutionOfOneTaskWritesNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, tb *outsideTable) {
		calls, goOn := 0, make(chan struct{})
		e, h := unstored(tb, func(context.Context, json.RawMessage) (json.RawMessage, error) {
			calls++
			<-goOn
			return nil, nil
		}).engine(t)
		start(t, e, "x", `{}`)
		start(t, e, "x", `{}`)
		wantExecution(t, e, "x", workflow.Running)
		close(goOn)
		h.await("x")
		if calls != 1 || tb.writes.Load() != 0 {
			t.Errorf("got %d calls and %d transactions, want 1 and 0", calls, tb.writes.Load())
		}
	})
}

func TestUnstoredExecutionIsForgottenAtItsEnd(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, tb *outsideTable) {
		stopped := make(chan struct{})
		e, h := unstored(tb, func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			<-ctx.Done()
			close(stopped)
			return nil, ctx.Err()
		}).engine(t)
		start(t, e, "x", `{}`)
		synctest.Wait() // its task runs
		check.Must(t, e.Stop(t.Context(), "m", "x", "test"))
		h.await("x")
		<-stopped
		wantExecution(t, e, "x", "")
		if err := e.Stop(t.Context(), "m", "x", "test"); !errors.Is(err, workflow.ErrNotFound) {
			t.Errorf("stop again: got %v, want %v", err, workflow.ErrNotFound)
		}
	})
}

// TestUnstoredExecutionThatWaitsIsStored with its count of attempts and the end of its wait, so
// that the next server goes on with it.
func TestUnstoredExecutionThatWaitsIsStored(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, tb *outsideTable) {
		calls := make(chan string, 10)
		work := func(_ context.Context, payload json.RawMessage) (json.RawMessage, error) {
			calls <- string(payload)
			if len(calls) == 1 {
				return nil, &workflow.TaskError{Name: "Later"}
			}
			return nil, nil
		}
		first, _ := unstored(tb, work).engine(t)
		begun := time.Now()
		start(t, first, "waits", `{"name":"waits"}`)
		synctest.Wait() // it waits for its retry
		cutOff(first)

		second, h := unstored(tb, work).engine(t)
		wantExecution(t, second, "waits", workflow.Running)
		check.Must(t, second.Resume(t.Context()))
		start(t, second, "waits", `{"name":"waits"}`)
		h.await("waits")
		if waited := time.Since(begun); waited != time.Minute || len(calls) != 2 {
			t.Errorf("got %d calls, the last after %v, want 2 after a minute", len(calls), waited)
		}
		wantExecution(t, second, "waits", workflow.Succeeded)
	})
}

// slowRead is a table that calls read after its first Get.
type slowRead struct {
	*outsideTable
	once sync.Once
	read func()
}

func (r *slowRead) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	item, err := r.outsideTable.Get(ctx, key)
	r.once.Do(r.read)
	return item, err
}

// TestUnstoredExecutionThatIsStoredDuringItsStopIsAborted, so that no later server goes on with it.
func TestUnstoredExecutionThatIsStoredDuringItsStopIsAborted(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, tb *outsideTable) {
		fail := make(chan struct{})
		s := unstored(tb, func(context.Context, json.RawMessage) (json.RawMessage, error) {
			<-fail
			return nil, &workflow.TaskError{Name: "Later"}
		})
		s.table = &slowRead{outsideTable: tb, read: func() {
			close(fail)
			synctest.Wait() // it is stored and waits for its retry
		}}
		e, h := s.engine(t)
		start(t, e, "x", `{}`)
		check.Must(t, e.Stop(t.Context(), "m", "x", "test"))
		h.await("x")
		wantExecution(t, e, "x", workflow.Aborted)
	})
}
