package local

import (
	"context"
	"errors"
	"time"

	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local/asl"
)

// task makes one attempt at a Task. After a failure that may be retried the execution stays in the
// state.
func (x *execution) task(ctx context.Context, state *asl.State) (done bool, err error) {
	x.idle = 0
	x.noteProgress()
	if x.condemned {
		return false, x.condemn(state)
	}
	if err := x.saveIfNeeded(); err != nil {
		return false, err
	}
	if err := x.sleepUntil(ctx, x.at.RetryAt); err != nil {
		return false, err
	}
	output, err := x.attempt(ctx, state)
	var failure *asl.Error
	switch {
	case err == nil:
		x.unsaved = true
		return x.move(state, state.Next, output, x.engine.now()), nil
	case errors.As(err, &failure):
		return false, x.afterFailure(state, failure)
	default:
		return false, err
	}
}

// attempt calls the Task's function and computes the state's output. The error is an
// *asl.Error, or the cause with which ctx ended.
func (x *execution) attempt(ctx context.Context, state *asl.State) (any, error) {
	arguments, err := state.Payload(x.data)
	if err != nil {
		return nil, err
	}
	x.reportData(Event{Type: TaskScheduled, State: state.Name}, map[string]any{"FunctionName": state.Function, "Payload": arguments})
	x.report(Event{Type: TaskStarted, State: state.Name})
	text, err := x.call(ctx, state, asl.Encode(arguments))
	if err != nil {
		return nil, err
	}
	result, err := decodeAnswer(text)
	if err != nil {
		return nil, x.failed(state, failureOf(err))
	}
	answer := asl.LambdaResult(result)
	x.reportData(Event{Type: TaskSucceeded, State: state.Name}, answer)
	return state.Output(x.data, answer)
}

// call invokes the function within the time that is left of the attempt, which began when the
// state was entered or retried.
func (x *execution) call(ctx context.Context, state *asl.State, payload []byte) ([]byte, error) {
	attempt := ctx
	if state.Timeout > 0 {
		begun := x.at.Entered
		if x.at.RetryAt.After(begun) {
			begun = x.at.RetryAt
		}
		var cancel context.CancelFunc
		attempt, cancel = context.WithTimeout(ctx, begun.Add(time.Duration(state.Timeout)).Sub(x.engine.now()))
		defer cancel()
	}
	text, err := x.invoke(attempt, x.engine.functions[state.Function], payload)
	switch {
	case err == nil:
		return text, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case attempt.Err() != nil: // whatever answer the function returned
		return nil, x.failed(state, &asl.Error{Name: asl.ErrorTimeout})
	default:
		x.logFault(state, err)
		return nil, x.failed(state, failureOf(err))
	}
}

// logFault logs an error that its function has no name for, because such an error was not
// foreseen. The cause of a named error is not logged: it may hold confidential data of the
// caller.
func (x *execution) logFault(state *asl.State, err error) {
	if _, named := errors.AsType[*workflow.TaskError](err); !named {
		x.engine.log.Error("task failed", "machine", x.record.Machine, "name", x.record.Name, "state", state.Name, "error", err)
	}
}

// failed reports an attempt's failure to the observer and returns it.
func (x *execution) failed(state *asl.State, failure *asl.Error) error {
	event := TaskFailed
	if failure.Name == asl.ErrorTimeout {
		event = TaskTimedOut
	}
	x.report(Event{Type: event, State: state.Name, Error: failure.Name, Cause: failure.Cause})
	return failure
}

// decodeAnswer reads a function's output. An empty output is null, as with Lambda.
func decodeAnswer(text []byte) (any, error) {
	if len(text) == 0 {
		return nil, nil
	}
	return asl.Decode(text)
}

// afterFailure decides what follows a failed attempt: another attempt, the state of a Catch,
// or the failure of the execution.
func (x *execution) afterFailure(state *asl.State, failure *asl.Error) error {
	if x.retry(state, failure) {
		x.clearResumed()
		return x.save()
	}
	return x.catch(state, failure)
}

// catch goes to the state that a Catch names for a failure, or returns the failure when no
// Catch covers it.
func (x *execution) catch(state *asl.State, failure *asl.Error) error {
	next, output, err := state.Catch(x.data, failure)
	if err != nil {
		return err
	}
	x.unsaved = true
	x.move(state, next, output, x.engine.now())
	return nil
}

// retry schedules another attempt if the retrier that covers the failure has an attempt left.
func (x *execution) retry(state *asl.State, failure *asl.Error) bool {
	i := state.Retrier(failure.Name)
	if i < 0 {
		return false
	}
	retrier := &state.Retriers[i]
	retries := make([]int, len(state.Retriers))
	copy(retries, x.at.Retries)
	if retries[i] >= retrier.MaxAttempts {
		return false
	}
	x.at.RetryAt = x.engine.now().Add(retrier.Delay(retries[i]))
	retries[i]++
	x.at.Retries = retries
	return true
}
