package local

import (
	"encoding/json"
	"time"

	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local/asl"
)

// EventType is a type of the history of Step Functions.
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

// stateEntered is TaskStateEntered, ChoiceStateEntered and so on.
func stateEntered(t asl.Type) EventType { return EventType(t) + "StateEntered" }

func stateExited(t asl.Type) EventType { return EventType(t) + "StateExited" }

// Event is one step of an execution. An execution that is resumed tells again of the state it was
// in.
type Event struct {
	Machine workflow.Machine
	Name    string
	Type    EventType
	Time    time.Time
	// State is the state concerned; "" for events of the execution itself.
	State string
	// Data is the input of the execution, of the state that was entered or of the call, or the
	// output of the call, of the state that was left or of the execution. Nil in other events.
	Data json.RawMessage
	// Error is the error's name in events that tell of a failure, Cause says more about it.
	Error, Cause string
}
