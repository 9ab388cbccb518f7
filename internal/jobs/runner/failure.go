package runner

import (
	"encoding/json"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/run"
)

// maxCause is how much of an error's text a run's failure repeats, in bytes.
const maxCause = 1 << 10

// failure is what a run that the machine's retries could not complete says of its end. Only what an
// agent did is for its callers to read; trouble of the platform itself is in its log.
func (e taskError) failure() run.Failure {
	if e.Name != errorAgentUnavailable {
		return run.Failure{Name: errorInternal, Message: "The platform could not complete the run; its log says why. Try again, and tell its operator if it persists."}
	}
	message := "The agent could not be reached, or ended before its answer did, at each attempt."
	if cause := e.cause(); cause != "" {
		message += " The last time: " + cause
	}
	return run.Failure{Name: errorAgentUnavailable, Message: message}
}

// cause is the first line of the error's text; an agent's last output, which may follow, is not for
// its callers.
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
