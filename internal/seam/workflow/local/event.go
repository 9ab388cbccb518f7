package local

import (
	"encoding/json"
	"time"

	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local/asl"
)

// EventType is an event type of the history of Step Functions.
type EventType string

const (
	ExecutionStarted   EventType = "ExecutionStarted"
	ExecutionSucceeded EventType = "ExecutionSucceeded"
	ExecutionFailed    EventType = "ExecutionFailed"
	ExecutionTimedOut  EventType = "ExecutionTimedOut"
	ExecutionAborted   EventType = "ExecutionAborted"
	TaskScheduled      EventType = "TaskScheduled"
	TaskStarted        EventType = "TaskStarted"
	TaskSucceeded      EventType = "TaskSucceeded"
	TaskFailed         EventType = "TaskFailed"
	TaskTimedOut       EventType = "TaskTimedOut"
)

// stateEntered returns TaskStateEntered, ChoiceStateEntered and so on.
func stateEntered(t asl.Type) EventType { return EventType(t) + "StateEntered" }

func stateExited(t asl.Type) EventType { return EventType(t) + "StateExited" }

// Event is one step of an execution. A resumed execution reports again that it entered the
// state in which it was.
type Event struct {
	Machine workflow.Machine
	Name    string
	Type    EventType
	Time    time.Time
	// State is the name of the state, "" for events of the execution itself.
	State string
	// Data is the input of the execution, of the entered state or of the call, or the output
	// of the call, of the state that was left or of the execution. It is nil in other events.
	Data json.RawMessage
	// Error is the error's name in events that report a failure. Cause says more about it.
	Error, Cause string
}
