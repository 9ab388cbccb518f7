package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/lru"
	"github.com/slipway-run/slipway/internal/base/turn"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// Runner works on runs. It is safe for concurrent use: each task is one attempt at one run.
type Runner struct {
	Config

	// turns limit how many runs of each deployment this process works on at a time.
	turns *turn.Turns[string]
	busy  *meter
	known limitsCache
	// alone is the turn of a run that is claimed without room for its state, grown the turn of a
	// run whose state has grown without room.
	alone, grown chan struct{}
}

// New returns a runner.
func New(c Config) *Runner {
	c.Jobs, c.Timeout = cmp.Or(c.Jobs, 1024), cmp.Or(c.Timeout, time.Hour)
	c.MaxEvents, c.MaxBytes = cmp.Or(c.MaxEvents, 1_000_000), cmp.Or(c.MaxBytes, 1<<30)
	if c.Budget == nil {
		c.Budget = budget.New(DefaultMemory)
	}
	if c.States == nil {
		c.States = budget.NewLasting(defaultStates)
	}
	c.StateAtRest, c.StateWait = cmp.Or(c.StateAtRest, 8<<20), cmp.Or(c.StateWait, time.Minute)
	c.FlushDelay, c.Heartbeat = cmp.Or(c.FlushDelay, 2*time.Millisecond), cmp.Or(c.Heartbeat, 5*time.Second)
	c.SilentHeartbeat = cmp.Or(c.SilentHeartbeat, c.Heartbeat)
	c.AgentWait, c.Margin = cmp.Or(c.AgentWait, 30*time.Second), cmp.Or(c.Margin, 3*time.Second)
	if c.Now == nil {
		c.Now = clock.System
	}
	return &Runner{
		Config: c, turns: turn.New[string](c.Jobs), busy: newMeter(c), known: limitsCache{lru.New[started, compute.RunLimits](mostKnown)},
		alone: make(chan struct{}, 1), grown: make(chan struct{}, 1),
	}
}

// task is the input of a Task state: the step, and the run of the step.
type task struct {
	Step string `json:"step"`
	run.Task
	// Error is, for GiveUp, the error with which the last attempt ended.
	Error taskError `json:"error"`
}

// taskError is an error in the form in which the machine's Catch notes it.
type taskError struct {
	Name string `json:"Error"`
	// Cause is the error's text. If a Lambda function was called, it is JSON that holds the
	// text.
	Cause string `json:"Cause"`
}

// result is the output of a Task state.
type result struct {
	// Due is, for the step Due, when the run may begin.
	Due string `json:"due"`
}

// Errors of the step Work that the machine catches: the next worker is called at once, or when
// the run is due. So a run that one worker ends passes no other state of the machine.
const (
	errorNextSlice = "NextSlice"
	errorNotDue    = "NotDue"
)

// continues is logged for each task that ends with one of these errors.
const continues = "the run goes on in another task"

// Task is the workflow.TaskFunc of the run machine.
func (r *Runner) Task(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
	var t task
	if err := json.Unmarshal(input, &t); err != nil {
		return nil, fmt.Errorf("decode task: %w", err)
	}
	var err error
	var answer result
	switch t.Step {
	case "Work":
		err = r.workIfDue(ctx, t.Ref())
	case "Due":
		var due time.Time
		due, _, err = r.Runs.Due(ctx, t.Ref())
		answer.Due = clock.Format(due)
	case "GiveUp":
		err = r.giveUp(ctx, t)
	default:
		err = fmt.Errorf("the run machine has no step %q", t.Step)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// workIfDue works on a run that is due. The errors with which the run goes on in another task are
// named.
func (r *Runner) workIfDue(ctx context.Context, ref run.Ref) error {
	_, waits, err := r.Runs.Due(ctx, ref)
	if err != nil {
		return err
	}
	if waits {
		return r.continues(ctx, ref, errorNotDue)
	}
	goesOn, err := r.work(ctx, ref)
	if _, early := errors.AsType[*run.NotDueError](err); early {
		return r.continues(ctx, ref, errorNotDue)
	}
	if err == nil && goesOn {
		return r.continues(ctx, ref, errorNextSlice)
	}
	return err
}

func (r *Runner) continues(ctx context.Context, ref run.Ref, why string) error {
	r.Log.InfoContext(ctx, continues, "run", ref.Run, "reason", why)
	return &workflow.TaskError{Name: why, Cause: continues}
}

// work makes one attempt at a run, or as much of it as this task has time for. goesOn says that
// the run goes on with another worker. If a canary could not complete the attempt, the active
// release goes on with it at once.
func (r *Runner) work(ctx context.Context, ref run.Ref) (goesOn bool, err error) {
	goesOn, err = r.attempt(ctx, ref, ref.Thread)
	if errors.Is(err, errCanary) {
		return r.attempt(ctx, ref, "")
	}
	return goesOn, err
}

// errCanary says that a canary was not available, or ended before its answer was complete. The
// run is left to another release.
var errCanary = errors.New("the canary is unavailable")

// attempt works on a run with the release that serves the thread; "" is for the active
// release.
func (r *Runner) attempt(ctx context.Context, ref run.Ref, thread string) (goesOn bool, err error) {
	slice, end := r.slice(ctx)
	defer end()
	release, limits, leave, err := r.turn(ctx, slice, ref, thread)
	if err != nil {
		return false, err
	}
	defer leave()
	endpoint, done, err := r.acquire(ctx, slice, release)
	if isUnavailableTask(err) && onTrial(ctx, r.Deployments, release, thread) {
		return false, errCanary
	}
	if err != nil {
		return false, err
	}
	defer done()
	// From here on, a worker that has little time left still takes the run up. So each slice
	// is counted, and slices cannot be wasted for ever.
	attempt, room, err := r.claim(ctx, slice, ref, limits.Jobs)
	defer room.close()
	if err != nil {
		return false, r.claimFailed(ctx, ref, err)
	}
	limited, stop := context.WithTimeoutCause(slice, limits.Timeout-r.Runs.Elapsed(attempt.Run), errTimedOut)
	defer stop()
	if limits.Scales && r.busy != nil {
		defer r.busy.enter(ctx, release)()
	}
	goesOn, err = r.invoke(ctx, limited, attempt, room, endpoint)
	if err != nil {
		return r.afterFailure(ctx, attempt, release, thread, err)
	}
	return goesOn, nil
}

// claimFailed handles the error of a claim. It ends a run that may have no other attempt.
func (r *Runner) claimFailed(ctx context.Context, ref run.Ref, err error) error {
	switch {
	case errors.Is(err, run.ErrNothingToDo), errors.Is(err, run.ErrWaitsForPermit):
		return nil
	case errors.Is(err, run.ErrAttemptsExhausted):
		return r.Runs.Fail(ctx, ref, run.Failure{Name: run.FailureAttemptsExhausted, Message: fmt.Sprintf(
			"None of %d attempts could be completed: the agent, or the worker that called it, ended before its answer did.", run.MaxAttempts)})
	case errors.Is(err, run.ErrCheckpointGone):
		return r.Runs.Fail(ctx, ref, run.Failure{Name: run.FailureCheckpointGone, Message: "The checkpoint from which the run was to go on " +
			"has been removed: another run was rolled back, or the history of the thread was pruned."})
	case errors.Is(err, run.ErrNoProgress):
		return r.Runs.TimeOut(ctx, ref, run.Failure{Name: run.FailureNoProgress, Message: fmt.Sprintf(
			"The agent completed no step in %d slices of work in a row, each as long as this platform lets one be.", run.MaxIdleSlices)})
	}
	return r.failTooLarge(ctx, ref, err)
}

// afterFailure handles the error with which an attempt has ended. A run whose release is
// unavailable goes on with another release, if one serves by now.
func (r *Runner) afterFailure(ctx context.Context, attempt *run.Attempt, release compute.Ref, thread string, err error) (goesOn bool, _ error) {
	handOver, untaken := attempt.HandOver, isUntaken(err)
	if untaken {
		handOver = attempt.GiveBack
	}
	switch {
	case !isUnavailableTask(err):
	case r.replaced(ctx, release, thread):
		goesOn, err = true, handOver(ctx)
	case onTrial(ctx, r.Deployments, release, thread):
		err = cmp.Or(handOver(ctx), errCanary)
	case untaken:
		err = cmp.Or(handOver(ctx), err)
	}
	if errors.Is(err, run.ErrFenced) {
		r.Log.DebugContext(ctx, "run was taken from its worker", "run", attempt.Run.Run, "attempt", attempt.Run.Attempt)
		return false, attempt.FreePermitOfDeletedRun(ctx)
	}
	return goesOn, r.failTooLarge(ctx, attempt.Run.Ref, err)
}

// replaced reports whether another release serves by now. If a release ends because its time
// to drain is over, this is no failure of its runs: the other release goes on with them.
func (r *Runner) replaced(ctx context.Context, release compute.Ref, thread string) bool {
	now, err := r.Deployments.Serving(ctx, release.Workspace, release.Deployment, thread)
	return err == nil && now != release
}

// onTrial reports whether the release serves the thread only as a canary, beside the active
// release.
func onTrial(ctx context.Context, deployments Deployments, release compute.Ref, thread string) bool {
	active, err := deployments.Serving(ctx, release.Workspace, release.Deployment, "")
	return thread != "" && err == nil && active != release
}

func isUnavailableTask(err error) bool {
	named, ok := errors.AsType[*workflow.TaskError](err)
	return ok && (named.Name == run.FailureAgentUnavailable || named.Name == run.FailureAgentAbsent)
}

// slice returns the context of the agent's work. It ends when the rest of the task's time is
// needed to hand the run over.
func (r *Runner) slice(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(ctx, deadline.Add(-r.Margin))
	}
	return context.WithCancel(ctx)
}

// turn waits until this runner may work on one more run of the deployment, and returns the
// release that serves the thread then.
func (r *Runner) turn(ctx, slice context.Context, ref run.Ref, thread string) (release compute.Ref, limits compute.RunLimits, leave func(), err error) {
	if release, limits, err = r.serving(ctx, ref, thread); err != nil {
		return release, limits, nil, err
	}
	leave, waited, err := r.turns.Take(slice, ref.Workspace+"/"+ref.Deployment)
	if err != nil || !waited {
		return release, limits, leave, err
	}
	// Another release may serve by now.
	if release, limits, err = r.serving(ctx, ref, thread); err != nil {
		leave()
	}
	return release, limits, leave, err
}

// serving returns the release that serves the thread now, with its limits.
func (r *Runner) serving(ctx context.Context, ref run.Ref, thread string) (compute.Ref, compute.RunLimits, error) {
	release, restart, err := r.Deployments.ServingSince(ctx, ref.Workspace, ref.Deployment, thread)
	if err != nil {
		return release, compute.RunLimits{}, unserved(err)
	}
	limits, err := r.limitsOf(ctx, started{release, restart})
	return release, limits, err
}

// unserved returns the failure of a run that no release serves.
func unserved(err error) error {
	if refused, ok := errors.AsType[*fault.Error](err); ok && !errors.Is(err, table.ErrBusy) {
		return &workflow.TaskError{Name: run.FailureAgentUnavailable, Cause: refused.Message}
	}
	return err
}

// acquire returns the agent of a release. If the agent does not come before the slice's end,
// it is unavailable: the machine asks for it again, but not endlessly.
func (r *Runner) acquire(ctx, slice context.Context, release compute.Ref) (compute.Endpoint, func(), error) {
	endpoint, done, err := compute.AcquireWithin(slice, r.Target, release, r.AgentWait)
	if isTargetUnavailable(err) || (err != nil && ctx.Err() == nil && slice.Err() != nil) {
		return compute.Endpoint{}, nil, &workflow.TaskError{Name: run.FailureAgentUnavailable, Cause: err.Error()}
	}
	if err != nil {
		return compute.Endpoint{}, nil, fmt.Errorf("acquire release: %w", err)
	}
	return endpoint, done, nil
}

// failTooLarge ends a run that has filled its thread. It returns any other error unchanged.
func (r *Runner) failTooLarge(ctx context.Context, ref run.Ref, err error) error {
	if full, ok := errors.AsType[*thread.TooLargeError](err); ok {
		return r.Runs.Fail(ctx, ref, *run.StateTooLarge(full))
	}
	return err
}
