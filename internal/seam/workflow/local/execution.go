package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local/asl"
)

// maxIdleSteps is how many states in a row may pass without a Task or Wait. Without the limit,
// a machine that loops through Choices would never end.
const maxIdleSteps = 10_000

// The reasons other than a failure for which an execution does not continue here.
var (
	errTimedOut   = errors.New("execution timed out")
	errSuperseded = errors.New("execution was ended or taken over by another writer")
)

// execution is one execution in the form in which its goroutine runs it.
type execution struct {
	engine  *Engine
	machine *asl.Machine
	// record holds the fields that do not change. While the execution runs, at and data
	// replace the other fields.
	record record
	at     position
	data   any
	// version is the stored version, 0 if none is stored.
	version int64
	// unsaved is set when something that must not be repeated has happened and is not stored
	// yet.
	unsaved bool
	// condemned is set when the execution's Task must fail and not be tried again; see
	// suspects.go.
	condemned bool
	// progressed, when not nil, is closed when the execution leaves the state in which it was
	// resumed.
	progressed chan struct{}
	// idle counts the states passed since the last Task or Wait.
	idle int
}

func (e *Engine) newExecution(machine workflow.Machine, name string, text json.RawMessage, input any) *execution {
	now := e.now()
	at := position{State: e.machines[machine].StartAt, Entered: now}
	version := int64(1)
	if slices.Contains(e.unstored, machine) {
		version = 0
	}
	return &execution{
		engine:  e,
		machine: e.machines[machine],
		record:  record{Execution: workflow.Execution{Machine: machine, Name: name, Input: bytes.Clone(text), Started: now}, position: at},
		at:      at,
		data:    input,
		version: version,
	}
}

// restore makes an execution from its stored form. A machine that is no longer defined has no
// states, so the execution fails.
func (e *Engine) restore(item *table.Item) (*execution, error) {
	r, err := readRecord(item)
	if err != nil {
		return nil, err
	}
	x := &execution{engine: e, machine: e.machines[r.Machine], record: *r, at: r.position, version: item.Int(attrVersion)}
	if x.machine == nil {
		x.machine = &asl.Machine{}
	}
	data := r.Data
	if data == nil {
		data = r.Input
	}
	if x.data, err = asl.Decode(data); err != nil {
		return nil, fmt.Errorf("execution %v: %w", item.Key, err)
	}
	return x, nil
}

// run carries the execution to its end, or to the point where this process must leave it. If
// the engine itself panics, the execution has failed.
func (x *execution) run(ctx context.Context) {
	if x.machine.Timeout > 0 {
		left := x.record.Started.Add(time.Duration(x.machine.Timeout)).Sub(x.engine.now())
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, left, errTimedOut)
		defer cancel()
	}
	err := guard.Run(x.engine.log, "execution "+x.record.Name+" of "+string(x.record.Machine), func() error { return x.advance(ctx) })
	if _, panicked := errors.AsType[*guard.PanicError](err); panicked {
		err = &asl.Error{Name: asl.ErrorRuntime, Cause: "The platform could not carry on this execution; its log says why."}
	}
	x.finish(err)
}

// advance goes from state to state. It returns nil when the execution has succeeded, with its
// output in data.
func (x *execution) advance(ctx context.Context) error {
	for done := false; !done; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		state, ok := x.machine.States[x.at.State]
		if !ok {
			return &asl.Error{Name: asl.ErrorRuntime, Cause: fmt.Sprintf("The machine has no state '%s'.", x.at.State)}
		}
		if x.at.RetryAt.IsZero() {
			x.reportData(Event{Type: stateEntered(state.Type), State: state.Name}, x.data)
		}
		var err error
		if done, err = x.step(ctx, state); err != nil {
			return locate(err, state)
		}
		if x.idle++; x.idle > maxIdleSteps {
			return &asl.Error{Name: asl.ErrorRuntime, Cause: fmt.Sprintf("It passed %d states in a row without a Task or Wait.", maxIdleSteps)}
		}
	}
	return nil
}

// locate adds the state to the cause of an error that the definition's own data caused.
func locate(err error, state *asl.State) error {
	var failure *asl.Error
	if !errors.As(err, &failure) || failure.Name != asl.ErrorRuntime {
		return err
	}
	return &asl.Error{
		Name:  failure.Name,
		Cause: fmt.Sprintf("An error occurred while executing the state '%s'. %s", state.Name, failure.Cause),
	}
}

// step executes one state and moves on, or stays for another attempt. It reports whether the
// execution is over.
func (x *execution) step(ctx context.Context, state *asl.State) (done bool, err error) {
	switch state.Type {
	case asl.Task:
		return x.task(ctx, state)
	case asl.Wait:
		return x.wait(ctx, state)
	case asl.Fail:
		return false, &asl.Error{Name: state.Error, Cause: state.Cause}
	case asl.Choice:
		next, err := state.Choose(x.data)
		if err != nil {
			return false, err
		}
		return x.move(state, next, x.data, x.at.Entered), nil
	default: // Succeed
		return x.move(state, "", x.data, x.at.Entered), nil
	}
}

// move leaves a state for the next state. next is "" at the end.
func (x *execution) move(from *asl.State, next string, output any, now time.Time) (done bool) {
	x.reportData(Event{Type: stateExited(from.Type), State: from.Name}, output)
	x.data = output
	x.at = position{State: next, Entered: now}
	return next == ""
}

func (x *execution) wait(ctx context.Context, state *asl.State) (done bool, err error) {
	x.idle = 0
	x.noteProgress()
	deadline, err := state.Deadline(x.at.Entered, x.data)
	if err != nil {
		return false, err
	}
	if deadline.After(x.engine.now()) {
		if err := x.saveIfNeeded(); err != nil {
			return false, err
		}
	}
	if err := x.sleepUntil(ctx, deadline); err != nil {
		return false, err
	}
	x.unsaved = true
	return x.move(state, state.Next, x.data, x.engine.now()), nil
}

// sleepUntil waits for a time, or returns the reason why the execution must stop here. Every
// state that acts calls it, so that no such state begins once the engine is closing.
func (x *execution) sleepUntil(ctx context.Context, until time.Time) error {
	select {
	case <-x.engine.closing.Done():
		return ErrClosed
	default:
	}
	left := until.Sub(x.engine.now())
	if left <= 0 {
		return nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-x.engine.closing.Done():
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (x *execution) report(event Event) {
	event.Machine, event.Name, event.Time = x.record.Machine, x.record.Name, x.engine.now()
	x.engine.report(event)
}

// reportData reports an event with its data. The data are encoded only when there is an observer.
func (x *execution) reportData(event Event, data any) {
	if x.engine.observe == nil {
		return
	}
	event.Data = asl.Encode(data)
	x.report(event)
}

func (e *Engine) report(event Event) {
	if e.observe != nil {
		e.observe(event)
	}
}
