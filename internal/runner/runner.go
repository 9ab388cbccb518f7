package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/slipway-run/slipway/internal/compute"
	"github.com/slipway-run/slipway/internal/graph"
	"github.com/slipway-run/slipway/internal/run"
	"github.com/slipway-run/slipway/internal/workflow"
)

// Names of the failures that the run machine's Retry matches on.
const errorAgentUnavailable = "AgentUnavailable"

// Deployments tells which release of a deployment serves.
type Deployments interface {
	// Serving returns the active revision; a deployment that has none is a fault.Unavailable, an unknown one a fault.NotFound.
	Serving(ctx context.Context, workspace, deployment string) (compute.Ref, error)
}

// Config is what a Runner works with.
type Config struct {
	Runs        *run.Store
	Deployments Deployments
	Target      compute.Target
	Graph       *graph.Client
	Log         *slog.Logger
	// FlushDelay is how long events are collected before they are written; default 2 ms.
	FlushDelay time.Duration
	// Heartbeat is how often a silent agent's lease is renewed; default 5 s.
	Heartbeat time.Duration
	// AgentWait is how long a run waits for an agent that is being restarted; default 30 s.
	AgentWait time.Duration
}

// Runner works on runs. It is safe for concurrent use: each task is one attempt at one run.
type Runner struct{ Config }

// New returns a runner.
func New(c Config) *Runner {
	if c.FlushDelay == 0 {
		c.FlushDelay = 2 * time.Millisecond
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = 5 * time.Second
	}
	if c.AgentWait == 0 {
		c.AgentWait = 30 * time.Second
	}
	return &Runner{c}
}

// task is the input of a Task state: the step, and the run that it is about.
type task struct {
	Step string `json:"step"`
	run.Task
}

// result is the output of a Task state.
type result struct {
	Next string `json:"next"`
}

// Task is the workflow.TaskFunc of the run machine.
func (r *Runner) Task(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
	var t task
	if err := json.Unmarshal(input, &t); err != nil {
		return nil, fmt.Errorf("decode task: %w", err)
	}
	var err error
	switch t.Step {
	case "Work":
		err = r.work(ctx, t.Ref())
	case "GiveUp":
		err = r.giveUp(ctx, t.Ref())
	default:
		err = fmt.Errorf("the run machine has no step %q", t.Step)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(result{Next: "Done"})
}

// giveUp ends a run that the machine's retries could not complete.
func (r *Runner) giveUp(ctx context.Context, ref run.Ref) error {
	return r.Runs.Fail(ctx, ref, run.Failure{
		Name:    errorAgentUnavailable,
		Message: "The agent could not be reached, or ended before its answer did, at each attempt.",
	})
}

// work is one attempt at a run.
func (r *Runner) work(ctx context.Context, ref run.Ref) error {
	endpoint, done, err := r.acquire(ctx, ref)
	if err != nil {
		return err
	}
	defer done()
	attempt, err := r.Runs.Claim(ctx, ref)
	switch {
	case errors.Is(err, run.ErrNothingToDo):
		return nil
	case errors.Is(err, run.ErrAttemptsExhausted):
		return r.giveUp(ctx, ref)
	case err != nil:
		return err
	}
	err = r.invoke(ctx, attempt, endpoint)
	if errors.Is(err, run.ErrFenced) {
		r.Log.DebugContext(ctx, "run was taken from its worker", "run", ref.Run, "attempt", attempt.Run.Attempt)
		return nil
	}
	return err
}

// acquire returns the agent that serves the deployment now.
func (r *Runner) acquire(ctx context.Context, ref run.Ref) (compute.Endpoint, func(), error) {
	release, err := r.Deployments.Serving(ctx, ref.Workspace, ref.Deployment)
	if err != nil {
		return compute.Endpoint{}, nil, err
	}
	wait, cancel := context.WithTimeout(ctx, r.AgentWait)
	defer cancel()
	endpoint, done, err := r.Target.Acquire(wait, release)
	var unavailable *compute.UnavailableError
	if errors.As(err, &unavailable) || (err != nil && ctx.Err() == nil && wait.Err() != nil) {
		return compute.Endpoint{}, nil, &workflow.TaskError{Name: errorAgentUnavailable, Cause: err.Error()}
	}
	if err != nil {
		return compute.Endpoint{}, nil, fmt.Errorf("acquire release: %w", err)
	}
	return endpoint, done, nil
}

// invoke calls the agent and writes its answer until the run is over.
func (r *Runner) invoke(ctx context.Context, attempt *run.Attempt, endpoint compute.Endpoint) error {
	// Ending this context closes the connection, which is what tells the agent to stop.
	call, stop := context.WithCancel(ctx)
	defer stop()
	stream, err := r.Graph.Invoke(call, endpoint, invocation(attempt))
	if err != nil {
		return r.fail(ctx, attempt, err)
	}
	answer := &answer{attempt: attempt}
	events := receive(call, stream)
	err = r.pump(ctx, answer, events)
	stop()
	for range events { // until the reader has let go of the stream
	}
	if err != nil {
		return r.fail(ctx, attempt, err)
	}
	return attempt.Finish(ctx, answer.outcome())
}

// fail handles what ended an attempt before the agent's answer was complete. What had arrived by then is kept, for the next attempt goes on from it.
func (r *Runner) fail(ctx context.Context, attempt *run.Attempt, err error) error {
	var refused *graph.RefusedError
	var broken *graph.ProtocolError
	var invalid *updateError
	switch {
	case errors.Is(err, run.ErrFenced):
		return err
	case errors.As(err, &refused):
		return finishFailed(ctx, attempt, "AgentRefused", refused.Error())
	case errors.As(err, &broken):
		return finishFailed(ctx, attempt, "ContractViolation", broken.Error())
	case errors.As(err, &invalid):
		return finishFailed(ctx, attempt, "InvalidUpdate", invalid.Error())
	}
	// The flush must also succeed when it is this process that is ending.
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if flushErr := attempt.Flush(flush); flushErr != nil {
		return flushErr
	}
	if unavailable, ok := errors.AsType[*graph.UnavailableError](err); ok {
		return &workflow.TaskError{Name: errorAgentUnavailable, Cause: unavailable.Error()}
	}
	return err
}

func finishFailed(ctx context.Context, attempt *run.Attempt, name, message string) error {
	return attempt.Finish(ctx, run.Outcome{Status: run.Error, Failure: &run.Failure{Name: name, Message: message}})
}
