package stepfunctions

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/test/emulator/awsjson"
)

// The limits of stored histories: the number of executions, and the number of events of each
// execution.
const (
	maxHistories = 1000
	maxEvents    = 1000
)

// history keeps the events of the latest executions.
type history struct {
	mu   sync.Mutex
	logs map[executionKey]*eventLog
	// order holds the keys of logs, the oldest first.
	order []executionKey
}

type executionKey struct {
	machine workflow.Machine
	name    string
}

// eventLog holds the events of one execution. The number 1 belongs to its start, whether or
// not this process saw the start.
type eventLog struct {
	events []numbered
	last   int64
}

// numbered is an event with its place in the history.
type numbered struct {
	id int64
	local.Event
}

const startID = 1

func newHistory() *history { return &history{logs: map[executionKey]*eventLog{}} }

// record observes the engine's events.
func (h *history) record(event local.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := executionKey{event.Machine, event.Name}
	log := h.logs[key]
	if log == nil || event.Type == local.ExecutionStarted {
		// A name can be used again when its execution is forgotten.
		log = h.begin(key)
	}
	if event.Type != local.ExecutionStarted {
		log.append(event)
	}
}

// begin makes the log of an execution, and drops the oldest log if there are too many.
func (h *history) begin(key executionKey) *eventLog {
	if h.logs[key] == nil {
		h.order = append(h.order, key)
	}
	if len(h.order) > maxHistories {
		delete(h.logs, h.order[0])
		h.order = slices.Delete(h.order, 0, 1)
	}
	log := &eventLog{last: startID}
	h.logs[key] = log
	return log
}

// append adds an event, in place of the oldest event if there are too many.
func (l *eventLog) append(event local.Event) {
	l.last++
	if len(l.events) == maxEvents {
		l.events = slices.Delete(l.events, 0, 1)
	}
	l.events = append(l.events, numbered{l.last, event})
}

// of returns the events of an execution. Its start, and its end if this process has not seen
// it, are made from the stored execution.
func (h *history) of(e workflow.Execution) []numbered {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := []numbered{{startID, local.Event{Type: local.ExecutionStarted, Time: e.Started, Data: e.Input}}}
	if log := h.logs[executionKey{e.Machine, e.Name}]; log != nil {
		events = append(events, log.events...)
	}
	last := events[len(events)-1]
	if end := ends[e.Status]; end != "" && last.Type != end {
		events = append(events, numbered{last.id + 1, local.Event{Type: end, Time: e.Stopped, Data: e.Output, Error: e.Error, Cause: e.Cause}})
	}
	return events
}

// ends maps the final statuses to their events.
var ends = map[workflow.Status]local.EventType{
	workflow.Succeeded: local.ExecutionSucceeded,
	workflow.Failed:    local.ExecutionFailed,
	workflow.TimedOut:  local.ExecutionTimedOut,
	workflow.Aborted:   local.ExecutionAborted,
}

type historyRequest struct {
	pageRequest
	executionRequest
	Reverse bool  `json:"reverseOrder"`
	Data    *bool `json:"includeExecutionData"`
}

type eventList struct {
	Events    []map[string]any `json:"events"`
	NextToken string           `json:"nextToken,omitempty"`
}

func (s *Service) getExecutionHistory(ctx context.Context, in historyRequest) (*eventList, error) {
	execution, err := s.find(ctx, in.ARN)
	if err != nil {
		return nil, err
	}
	events := s.history.of(execution)
	if in.Reverse {
		slices.Reverse(events)
	}
	events, next, err := page(events, in.pageRequest)
	if err != nil {
		return nil, err
	}
	list := &eventList{Events: []map[string]any{}, NextToken: next}
	for _, event := range events {
		list.Events = append(list.Events, s.show(event, in.Data == nil || *in.Data))
	}
	return list, nil
}

// show formats an event as the service does: the details are under a name that depends on the
// type.
func (s *Service) show(event numbered, withData bool) map[string]any {
	previous := event.id - 1
	if previous == startID { // the first state has no previous event, as in the service
		previous = 0
	}
	shown := map[string]any{"id": event.id, "previousEventId": previous, "timestamp": awsjson.Time(event.Time), "type": event.Type}
	details := map[string]any{}
	if event.Error != "" {
		details["error"] = event.Error
	}
	if event.Cause != "" && withData {
		details["cause"] = event.Cause
	}
	data := func(name string) {
		if event.Data != nil && withData {
			details[name], details[name+"Details"] = string(event.Data), included{true}
		}
	}
	name := strings.ToLower(string(event.Type[:1])) + string(event.Type[1:])
	switch {
	case strings.HasSuffix(name, "StateEntered"):
		name, details["name"] = "stateEntered", event.State
		data("input")
	case strings.HasSuffix(name, "StateExited"):
		name, details["name"] = "stateExited", event.State
		data("output")
	case strings.HasPrefix(name, "task"):
		details["resourceType"], details["resource"] = "lambda", "invoke"
		if event.Type == local.TaskScheduled {
			details["region"], details["parameters"] = s.arns.region, string(event.Data)
		} else {
			data("output")
		}
	case event.Type == local.ExecutionStarted:
		details["roleArn"] = s.arns.role()
		data("input")
	default:
		data("output")
	}
	shown[name+"EventDetails"] = details
	return shown
}
