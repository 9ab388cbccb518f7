package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// errorThrottled is the error with which Step Functions reports that Lambda has no worker.
const errorThrottled = "Lambda.TooManyRequestsException"

// giveUp ends a run whose attempts have failed. It puts a run back that no worker could take up,
// however often a worker was called: reconcile starts a new execution.
func (r *Runner) giveUp(ctx context.Context, t task) error {
	if t.Error.Name == errorThrottled || t.Error.Name == workflow.ErrorBusy {
		r.Log.WarnContext(ctx, "the run waits for another execution: the platform took no more work for hours", "run", t.Run, "reason", t.Error.Name)
		return nil
	}
	return r.Runs.Fail(ctx, t.Ref(), t.Error.failure())
}

// maxCause is how many bytes of an error's text a run's failure repeats.
const maxCause = 1 << 10

// failure returns the failure of a run that the machine's retries could not complete. Only
// errors of an agent are shown to its callers; errors of the platform itself are in its log.
func (e taskError) failure() run.Failure {
	message := "The agent could not be reached, or ended before its answer did, at each attempt."
	switch e.Name {
	case run.FailureAgentUnavailable:
	case run.FailureAgentAbsent:
		message = "No agent took the run, for hours."
	default:
		return run.Failure{Name: run.FailureInternal, Message: "The platform could not complete the run; its log says why. Try again, and tell its operator if it persists."}
	}
	if cause := e.cause(); cause != "" {
		message += " The last time: " + cause
	}
	return run.Failure{Name: e.Name, Message: message}
}

// cause returns the first line of the error's text. An agent's last output, which may follow,
// is not shown to its callers.
func (e taskError) cause() string {
	cause := e.Cause
	var thrown struct {
		Message string `json:"errorMessage"`
	}
	if err := json.Unmarshal([]byte(cause), &thrown); err == nil {
		cause = thrown.Message
	}
	first, _, _ := strings.Cut(strings.TrimSpace(cause), "\n")
	return beginning(strings.TrimSpace(first), maxCause)
}

// endRefused ends a run that the agent has refused. An input that the agent cannot take leaves the
// thread with its run.
func endRefused(ctx context.Context, attempt *run.Attempt, refused *graph.RefusedError) error {
	if refused.IsOfContent() {
		if err := attempt.RevertInput(ctx); err != nil {
			return err
		}
	}
	return finishFailed(ctx, attempt, run.FailureAgentRefused, refused.Error())
}

// failedError says that the server cannot take what an agent sends, and with which failure the run
// ends.
type failedError struct {
	name, message string
	cause         error
}

func (e *failedError) Error() string { return e.message }

func (e *failedError) Unwrap() error { return e.cause }

func finishFailed(ctx context.Context, attempt *run.Attempt, name, message string) error {
	return attempt.Finish(ctx, run.Outcome{Status: run.Error, Failure: &run.Failure{Name: name, Message: message}})
}

// endPatience bounds how long to wait for the target's reason for the end of an agent.
const endPatience = time.Second

// unavailableTask returns the failure of an attempt whose agent has ended, or was not there. The
// machine waits for an absent agent.
func unavailableTask(err *graph.UnavailableError) error {
	name := run.FailureAgentUnavailable
	if _, absent := errors.AsType[*graph.AbsentError](err); absent {
		name = run.FailureAgentAbsent
	}
	return fmt.Errorf("%w (%w)", &workflow.TaskError{Name: name, Cause: err.Error()}, err)
}

// isUntaken reports whether certainly no agent took the run. Otherwise the attempt counts: a run
// may have ended its agent.
func isUntaken(err error) bool {
	absent, ok := errors.AsType[*graph.AbsentError](err)
	return ok && !absent.MayHaveBegun
}

// explained returns the error of an invocation that broke off, with the reason why the agent
// has ended if its target knows the reason. Such a target starts its agents itself, and Acquire has
// waited for the agent. So the returned error is never a graph.AbsentError, for which the machine
// would wait again.
func explained(ctx context.Context, endpoint compute.Endpoint, err error) error {
	unavailable, ok := errors.AsType[*graph.UnavailableError](err)
	if !ok || endpoint.Witness == nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	why := cmp.Or(endpoint.Witness.WhyEnded(wait), unavailable.Err.Error())
	return &graph.UnavailableError{Err: errors.New(why)}
}
