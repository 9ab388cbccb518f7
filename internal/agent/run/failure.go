package run

import (
	"errors"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/thread"
)

// Failure is why a run ended as Error or Timeout.
type Failure struct {
	Name    string `json:"error"`
	Message string `json:"message"`
}

// Names of the failures that the platform itself notices. All other names are names of an
// agent's own errors. The run machine's Retry matches on the first two names.
const (
	FailureAgentAbsent       = "AgentAbsent"
	FailureAgentUnavailable  = "AgentUnavailable"
	FailureAgentRefused      = "AgentRefused"
	FailureAttemptsExhausted = "AttemptsExhausted"
	FailureCheckpointGone    = "CheckpointGone"
	FailureContractViolation = "ContractViolation"
	FailureInternal          = "InternalError"
	FailureInvalidUpdate     = "InvalidUpdate"
	FailureNoProgress        = "NoProgress"
	FailureOutOfDisk         = "OutOfDisk"
	FailureOutputTooLarge    = "OutputTooLarge"
	FailureStateTooLarge     = "StateTooLarge"
	FailureTimedOut          = "Timeout"
)

// StateTooLarge returns the failure of a run that made a state too large, or whose leftovers the
// state cannot hold.
func StateTooLarge(err *thread.TooLargeError) *Failure {
	return &Failure{Name: FailureStateTooLarge, Message: err.Error() + " What the run had not finished is not in it."}
}

func isTooLarge(err error) bool {
	_, full := errors.AsType[*thread.TooLargeError](err)
	return full
}

// remedies say what to change after a failure that the platform noticed.
var remedies = map[string]string{
	FailureAgentAbsent:       "Read the agent's log at that time. If the agent ends at its start, correct it and deploy it again, else have the operator look for its tasks in ECS.",
	FailureAgentUnavailable:  "Read the agent's log at that time. Correct the agent, and deploy it again. " + moreMemory,
	FailureAgentRefused:      "Read the agent's log at that time. An agent answers POST /invocations with the status 200 and a stream of events.",
	FailureAttemptsExhausted: "Read the agent's log at that time. " + moreMemory,
	FailureCheckpointGone:    "Start the run again, from a checkpoint that the history of the thread names.",
	FailureContractViolation: "Correct what the agent answers to POST /invocations, and deploy it again.",
	FailureInternal:          "Start the run again, and tell the operator of the platform if it fails again.",
	FailureInvalidUpdate:     "Correct what the node returns, and deploy the agent again.",
	FailureNoProgress:        "Make the steps of the graph shorter, so that each step ends within the time of one slice.",
	FailureOutOfDisk:         "Free space on the disk of the server, and start the run again.",
	FailureOutputTooLarge:    "Have the agent return less at a time, and deploy it again.",
	FailureStateTooLarge:     "Start a new thread, or keep large data outside of the state.",
	failureUnknownInterrupt:  "Read which questions the thread waits on now, and answer those.",
	FailureTimedOut:          "Make the answer shorter, or give runs more time: the variable BG_JOB_TIMEOUT_SECS of the deployment.",
}

// moreMemory says what gives an agent more memory.
const moreMemory = "If it was killed, it may need more memory: source_config.resource_spec of a deployment of the source external_docker, else compute_tier by PATCH /v2/deployments/{deployment_id}/resource-tiers."

const agentsRemedy = "Correct the agent, deploy it again, and start the run again. The agent's log at that time may say more."

// explain returns the cause of the failure, the lines that show the cause, and what to change.
func (f Failure) explain() (cause string, evidence []string, remedy string) {
	first, rest, _ := strings.Cut(strings.TrimSpace(f.Message), "\n")
	for line := range strings.Lines(rest) {
		if line = strings.TrimRight(line, " \r\n"); line != "" {
			evidence = append(evidence, line)
		}
	}
	// The last lines of a long text say most.
	evidence = evidence[max(0, len(evidence)-maxEvidence):]
	if remedy, known := remedies[f.Name]; known {
		return first, evidence, remedy
	}
	return strings.TrimSuffix(f.Name+": "+first, ": "), evidence, agentsRemedy
}

// maxEvidence is how many lines of an error's text an explanation repeats.
const maxEvidence = 10
