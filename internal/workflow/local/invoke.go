package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/slipway-run/slipway/internal/workflow"
	"github.com/slipway-run/slipway/internal/workflow/local/asl"
)

// PanicError is the error name of a Task whose function panicked.
const PanicError = "Panic"

// errAttemptTimedOut is why the context of an attempt ended that took longer than the Task's TimeoutSeconds.
var errAttemptTimedOut = errors.New("attempt timed out")

// answer is what a function returned.
type answer struct {
	output json.RawMessage
	err    error
}

// invoke calls a function and returns its output, or the cause with which ctx ended. A function that does not heed its context is
// left behind: its answer no longer matters.
func (x *execution) invoke(ctx context.Context, function workflow.TaskFunc, payload json.RawMessage) (json.RawMessage, error) {
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: errors.New("the function ended its goroutine")}
		defer func() {
			if value := recover(); value != nil {
				a = answer{err: x.panicked(value)}
			}
			answers <- a
		}()
		a.output, a.err = function(ctx, payload)
	}()
	select {
	case a := <-answers:
		if a.err != nil && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return a.output, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (x *execution) panicked(value any) error {
	x.engine.log.Error("task function panicked",
		"machine", x.record.Machine, "name", x.record.Name, "state", x.at.State, "panic", value, "stack", string(debug.Stack()))
	return &workflow.TaskError{Name: PanicError, Cause: fmt.Sprint(value)}
}

// lambdaError is the Cause that the service reports for a function's error.
type lambdaError struct {
	Message string `json:"errorMessage"`
	Type    string `json:"errorType"`
}

// failureOf turns a function's error into what Retry and Catch see.
func failureOf(err error) *asl.Error {
	if errors.Is(err, errAttemptTimedOut) {
		return &asl.Error{Name: asl.ErrorTimeout}
	}
	name, message := asl.ErrorTaskFailed, err.Error()
	var named *workflow.TaskError
	if errors.As(err, &named) {
		name, message = cmp.Or(named.Name, name), named.Cause
	}
	cause, err := json.Marshal(lambdaError{Message: message, Type: name})
	if err != nil {
		return &asl.Error{Name: name, Cause: message}
	}
	return &asl.Error{Name: name, Cause: string(cause)}
}
