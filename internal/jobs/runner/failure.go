package runner

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// maxCause is how many bytes of an error's text a run's failure repeats.
const maxCause = 1 << 10

// failure returns the failure of a run that the machine's retries could not complete. Only
// errors of an agent are shown to its callers; errors of the platform itself are in its log.
func (e taskError) failure() run.Failure {
	if e.Name != run.FailureAgentUnavailable {
		return run.Failure{Name: run.FailureInternal, Message: "The platform could not complete the run; its log says why. Try again, and tell its operator if it persists."}
	}
	message := "The agent could not be reached, or ended before its answer did, at each attempt."
	if cause := e.cause(); cause != "" {
		message += " The last time: " + cause
	}
	return run.Failure{Name: run.FailureAgentUnavailable, Message: message}
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
		if err := attempt.TakeBack(ctx); err != nil {
			return err
		}
	}
	return finishFailed(ctx, attempt, run.FailureAgentRefused, refused.Error())
}

func finishFailed(ctx context.Context, attempt *run.Attempt, name, message string) error {
	return attempt.Finish(ctx, run.Outcome{Status: run.Error, Failure: &run.Failure{Name: name, Message: message}})
}
