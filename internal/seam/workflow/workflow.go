// Package workflow is the seam to the engine that carries rollouts and runs to their end: Step
// Functions on AWS, package workflow/local on one machine. Both execute the same Amazon States
// Language files (infra/statemachines), whose Task states call the functions `rollout`, `runner`
// and `webhook` with ids only.
package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Machine names a state machine; it is the file's name without ".asl.json".
type Machine string

const (
	// Rollout carries one revision from its creation to DEPLOYED or a failure.
	Rollout Machine = "rollout"
	// Teardown takes a deleted deployment apart.
	Teardown Machine = "teardown"
	// Restart has the agents of a deployment started anew.
	Restart Machine = "restart"
	// Run carries one run to its final status.
	Run Machine = "run"
	// Webhook carries one message to the address that is told.
	Webhook Machine = "webhook"
)

// ErrNotFound is returned by Describe and Stop for an execution that the engine does not know.
var ErrNotFound = errors.New("execution not found")

// ErrServerDied is returned for work that is not tried again, because two servers have died while
// they did it.
var ErrServerDied = errors.New("two servers ended while they did this work")

// Trials watch work that a server begins again by itself after its death, and that no execution
// does.
type Trials interface {
	// Try does the work, or returns ErrServerDied. The name says which piece of work it is.
	Try(ctx context.Context, name string, work func() error) error
}

// Status is the state of an execution, in the words of Step Functions.
type Status string

const (
	Running   Status = "RUNNING"
	Succeeded Status = "SUCCEEDED"
	Failed    Status = "FAILED"
	TimedOut  Status = "TIMED_OUT"
	Aborted   Status = "ABORTED"
)

// Execution is what an engine tells about one execution.
type Execution struct {
	Machine Machine
	Name    string
	Status  Status
	Input   json.RawMessage
	// Output is set when Status is Succeeded.
	Output json.RawMessage
	// Error and Cause say why an execution that is Failed or TimedOut ended; of one that was
	// Aborted there is only a cause.
	Error, Cause string
	Started      time.Time
	// Stopped is zero while Running.
	Stopped time.Time
}

// Engine starts, stops and describes executions. All methods may be called concurrently.
type Engine interface {
	// Start begins an execution. It is idempotent by name: starting a name again, whether it still
	// runs or has ended, does nothing. When it returns, the execution will go on even if this
	// process dies.
	Start(ctx context.Context, machine Machine, name string, input json.RawMessage) error
	// Stop ends an execution as Aborted. Stopping one that has ended does nothing. The Task in
	// progress sees its context cancelled where the engine can do so; correctness never depends on
	// it.
	Stop(ctx context.Context, machine Machine, name string, cause string) error
	// Describe returns an execution, or ErrNotFound.
	Describe(ctx context.Context, machine Machine, name string) (Execution, error)
}

// TaskFunc is a function that Task states call. The error's name in Retry and Catch is that of a
// *TaskError, else "States.TaskFailed".
type TaskFunc func(ctx context.Context, input json.RawMessage) (json.RawMessage, error)

// TaskError is a failure with the name that Retry and Catch match on. A Lambda function reports it
// as its error type.
type TaskError struct {
	Name  string
	Cause string
}

// ErrorBusy is the name of a failure that passes when a service under the platform takes calls
// again: each Task is repeated for hours because of it, and nothing counts it as a failed attempt
// of its work.
const ErrorBusy = "Busy"

// ErrorNoCapacity is the name of a failure that passes when there is room for a build or a release:
// the Tasks that begin such work are repeated for hours because of it.
const ErrorNoCapacity = "NoCapacity"

func (e *TaskError) Error() string { return e.Name + ": " + e.Cause }
