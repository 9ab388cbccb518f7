// Package workflow is the seam to the engine that carries rollouts and runs to their end: Step
// Functions on AWS, package workflow/local on one machine. Both execute the same Amazon States
// Language files (infra/statemachines). Their Task states call the functions `rollout`,
// `runner` and `webhook` with ids only.
package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// Machine names a state machine. The name is the file's name without ".asl.json".
type Machine string

const (
	// Rollout carries one revision from its creation to DEPLOYED or a failure.
	Rollout Machine = "rollout"
	// Teardown removes the parts of a deleted deployment.
	Teardown Machine = "teardown"
	// Restart starts the agents of a deployment again.
	Restart Machine = "restart"
	// Run carries one run to its final status.
	Run Machine = "run"
	// Webhook carries one message to the address of its receiver.
	Webhook Machine = "webhook"
)

// ErrNotFound is returned by Describe and Stop for an execution that the engine does not know.
var ErrNotFound = errors.New("execution not found")

// ErrBusy is wrapped by Start when the account has as many open executions as it may have. Starting
// again later helps.
var ErrBusy = fault.New(fault.Unavailable, "There are too many executions. Try again later.")

// ErrServerDied is returned for work that is not tried again, because two servers have crashed
// while they did it.
var ErrServerDied = errors.New("two servers crashed while they did this work")

// Trials watches work outside of executions that a server begins again by itself after its
// death.
type Trials interface {
	// Try does the work, or returns ErrServerDied. The name identifies the piece of work.
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

// Execution is the description of one execution by its engine. Its JSON is in the records of
// package workflow/local.
type Execution struct {
	Machine Machine         `json:"machine"`
	Name    string          `json:"name"`
	Status  Status          `json:"-"`
	Input   json.RawMessage `json:"input"`
	// Output is set when Status is Succeeded.
	Output json.RawMessage `json:"output,omitempty"`
	// Error and Cause say why an execution that is Failed or TimedOut ended. An execution that
	// was Aborted has only a cause.
	Error   string    `json:"error,omitempty"`
	Cause   string    `json:"cause,omitempty"`
	Started time.Time `json:"started"`
	// Stopped is zero while Running.
	Stopped time.Time `json:"stopped,omitzero"`
}

// Engine starts, stops and describes executions. All methods may be called concurrently.
type Engine interface {
	// Start begins an execution. It is idempotent by name: a second Start with the same name
	// does nothing, whether the execution still runs or has ended. When Start returns, the
	// execution will continue even if this process dies. For a run, an engine may forget an
	// execution that has ended, or whose process has died: run.Store.Rescue starts it again.
	Start(ctx context.Context, machine Machine, name string, input json.RawMessage) error
	// Stop ends an execution as Aborted. It does nothing if the execution has ended. The
	// context of the Task in progress is cancelled where the engine can do so; correctness
	// never depends on it.
	Stop(ctx context.Context, machine Machine, name string, cause string) error
	// Describe returns an execution, or ErrNotFound.
	Describe(ctx context.Context, machine Machine, name string) (Execution, error)
}

// TaskFunc is a function that Task states call. In Retry and Catch, the error has the name of
// a *TaskError, or else "States.TaskFailed".
type TaskFunc func(ctx context.Context, input json.RawMessage) (json.RawMessage, error)

// TaskError is a failure with the name that Retry and Catch match. A Lambda function reports
// the name as its error type.
type TaskError struct {
	Name  string
	Cause string
}

// ErrorBusy is the name of a failure that passes when a service under the platform accepts
// calls again. Each Task is repeated for hours because of it, and it is not counted as a
// failed attempt of the Task's work.
const ErrorBusy = "Busy"

// ErrorNoCapacity is the name of a failure that passes when there is room for a build or a
// release. The Tasks that begin such work are repeated for hours because of it.
const ErrorNoCapacity = "NoCapacity"

func (e *TaskError) Error() string { return e.Name + ": " + e.Cause }
