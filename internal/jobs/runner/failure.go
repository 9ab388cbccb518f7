package runner

import (
	"encoding/json"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/run"
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
