package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/test/check"
)

// gate is a function that reports when it is called and returns when the test allows it.
type gate struct {
	entered chan string
	through chan struct{}
	// cancelled gets the cause with which a call's context ended.
	cancelled chan error
}

func newGate() *gate {
	return &gate{entered: make(chan string, 8), through: make(chan struct{}, 8), cancelled: make(chan error, 8)}
}

func (g *gate) call(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
	g.entered <- string(payload)
	select {
	case <-g.through:
		return []byte(`"done"`), nil
	case <-ctx.Done():
		g.cancelled <- context.Cause(ctx)
		return nil, ctx.Err()
	}
}

// TestCloseWaitsForTasks checks that a Task in progress is completed and stored, and that the
// next Task is left to another engine.
func TestCloseWaitsForTasks(t *testing.T) {
	t.Parallel()
	tb, g := fileTable(t), newGate()
	e, _ := setup{table: tb, definition: twoTasks, functions: works(g.call)}.engine(t)
	start(t, e, "e1", `{}`)
	<-g.entered
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		e.Close(context.Background())
	}()
	waitUntilClosing(t, e)
	g.through <- struct{}{}
	<-closed
	if got := describe(t, e, "e1"); got.Status != workflow.Running {
		t.Fatalf("got status %s, want RUNNING", got.Status)
	}
	if got, want := resumeWithGate(t, tb, twoTasks), []string{`"B"`}; !cmp.Equal(got, want) {
		t.Errorf("the next engine called the function for %v, want %v", got, want)
	}
}

// waitUntilClosing returns when the engine accepts no more executions.
func waitUntilClosing(t *testing.T, e *local.Engine) {
	t.Helper()
	for {
		err := e.Start(t.Context(), "m", "e1", []byte(`{}`)) // it exists, so this starts nothing
		if errors.Is(err, local.ErrClosed) {
			return
		}
		check.Must(t, err)
	}
}

// resumeWithGate carries e1 to its end with a new engine and returns the payloads with which
// its function was called.
func resumeWithGate(t *testing.T, tb table.Table, definition string) []string {
	t.Helper()
	g := newGate()
	for range cap(g.through) {
		g.through <- struct{}{}
	}
	e, h := setup{table: tb, definition: definition, functions: works(g.call)}.engine(t)
	check.Must(t, e.Resume(t.Context()))
	h.await("e1")
	if got := describe(t, e, "e1"); got.Status != workflow.Succeeded {
		t.Errorf("got status %s, want SUCCEEDED", got.Status)
	}
	close(g.entered)
	var calls []string
	for call := range g.entered {
		calls = append(calls, call)
	}
	return calls
}

// TestCloseCutsTasksOff checks that the context of a Task that takes too long is cancelled,
// and that this is no failure of the execution.
func TestCloseCutsTasksOff(t *testing.T) {
	t.Parallel()
	tb, g := fileTable(t), newGate()
	var log check.Log
	e, h := setup{table: tb, definition: oneTask, functions: works(g.call), log: &log}.engine(t)
	start(t, e, "e1", `{}`)
	<-g.entered
	cutOff(e)
	if err := <-g.cancelled; !errors.Is(err, local.ErrClosed) {
		t.Errorf("the context ended with %v, want ErrClosed", err)
	}
	if got := describe(t, e, "e1"); got.Status != workflow.Running {
		t.Errorf("got status %s, want RUNNING", got.Status)
	}
	want := []string{"ExecutionStarted", "TaskStateEntered", "TaskScheduled", "TaskStarted"}
	if diff := cmp.Diff(want, h.types("e1")); diff != "" || log.String() != "" {
		t.Errorf("events (-want +got):\n%s\nlog: %s", diff, log.String())
	}
	if got, want := resumeWithGate(t, tb, oneTask), []string{`"A"`}; !cmp.Equal(got, want) {
		t.Errorf("the next engine called the function for %v, want %v", got, want)
	}
}

// TestCloseDoesNotWaitForDeafFunctions checks that the late answer of a function that ignores its
// context changes nothing.
func TestCloseDoesNotWaitForDeafFunctions(t *testing.T) {
	t.Parallel()
	tb, entered, release := fileTable(t), make(chan struct{}), make(chan struct{})
	returned := make(chan struct{})
	e, _ := setup{table: tb, definition: oneTask, functions: works(func(context.Context, json.RawMessage) (json.RawMessage, error) {
		defer close(returned)
		close(entered)
		<-release
		return []byte(`"late"`), nil
	})}.engine(t)
	start(t, e, "e1", `{}`)
	<-entered
	cutOff(e)
	close(release)
	<-returned
	if got := describe(t, e, "e1"); got.Status != workflow.Running {
		t.Errorf("got status %s, want RUNNING", got.Status)
	}
}

// TestCloseEndsWaits checks that a Wait delays Close no longer than a Task that has not begun.
func TestCloseEndsWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, tb *outsideTable) {
		e, _ := setup{table: tb, definition: waits}.engine(t)
		start(t, e, "e1", `{}`)
		synctest.Wait()
		e.Close(context.Background())
		if took := time.Since(bubbleStart); took != 0 {
			t.Errorf("Close took %v, want no time", took)
		}
		if got := describe(t, e, "e1"); got.Status != workflow.Running {
			t.Errorf("got status %s, want RUNNING", got.Status)
		}
	})
}

// slowTable holds back the transactions that are made while it is armed.
type slowTable struct {
	table.Table
	armed   atomic.Bool
	held    chan struct{}
	release chan struct{}
}

func (tb *slowTable) Transact(ctx context.Context, writes ...table.Write) error {
	if tb.armed.Load() {
		close(tb.held)
		<-tb.release
	}
	return tb.Table.Transact(ctx, writes...)
}

// TestCloseWaitsForTheTable checks that a closed engine no longer uses its table, even when
// its Tasks were cut off.
func TestCloseWaitsForTheTable(t *testing.T) {
	t.Parallel()
	tb := &slowTable{Table: fileTable(t), held: make(chan struct{}), release: make(chan struct{})}
	e, h := setup{table: tb, definition: oneTask, functions: works(func(context.Context, json.RawMessage) (json.RawMessage, error) {
		tb.armed.Store(true)
		return nil, nil
	})}.engine(t)
	start(t, e, "e1", `{}`)
	<-tb.held
	var released atomic.Bool
	go func() {
		waitUntilClosing(t, e)
		released.Store(true)
		close(tb.release)
	}()
	cutOff(e)
	if !released.Load() {
		t.Error("Close returned while a transaction was under way")
	}
	h.await("e1")
	if got := describe(t, e, "e1"); got.Status != workflow.Succeeded {
		t.Errorf("got status %s, want SUCCEEDED", got.Status)
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	e, _ := setup{table: fileTable(t), definition: waits}.engine(t)
	start(t, e, "e1", `{}`)
	for range 2 {
		e.Close(context.Background())
	}
	if err := e.Start(t.Context(), "m", "e2", []byte(`{}`)); !errors.Is(err, local.ErrClosed) {
		t.Errorf("Start: got %v, want ErrClosed", err)
	}
	if err := e.Resume(t.Context()); !errors.Is(err, local.ErrClosed) {
		t.Errorf("Resume: got %v, want ErrClosed", err)
	}
}
