package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local/asl"
)

// PanicError is the error name of a Task whose function panicked.
const PanicError = "Panic"

// answer is the result of a function.
type answer struct {
	output json.RawMessage
	err    error
}

// invoke calls a function and returns its answer. When ctx ends first, invoke returns the
// error of ctx and leaves the function running: its later answer no longer matters.
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
		return a.output, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
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

// failureOf turns a function's error into the failure that Retry and Catch see.
func failureOf(err error) *asl.Error {
	name, message := asl.ErrorTaskFailed, err.Error()
	if named, ok := errors.AsType[*workflow.TaskError](err); ok {
		name, message = cmp.Or(named.Name, name), named.Cause
	}
	return &asl.Error{Name: name, Cause: string(asl.Encode(lambdaError{Message: message, Type: name}))}
}
