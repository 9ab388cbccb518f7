package run

import (
	"encoding/json"
	"time"

	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/table"
	"github.com/slipway-run/slipway/internal/thread"
)

// Ref names a run.
type Ref struct {
	thread.Ref
	Run string
}

// Key is the run's storage key.
func (r Ref) Key() table.Key { return keys.Run(r.Workspace, r.Deployment, r.Thread, r.Run) }

// Request is what a client asked for; it never changes.
type Request struct {
	AssistantID string   `json:"assistant_id"`
	Graph       string   `json:"graph"`
	Strategy    Strategy `json:"multitask_strategy"`
	// StreamModes are the kinds of events that readers get who do not ask for others.
	StreamModes []string `json:"stream_mode"`
	// The rest is JSON as the client sent it; nil when absent.
	Input           json.RawMessage `json:"input,omitempty"`
	Command         json.RawMessage `json:"command,omitempty"`
	Config          json.RawMessage `json:"config,omitempty"`
	Context         json.RawMessage `json:"context,omitempty"`
	Metadata        json.RawMessage `json:"metadata,omitempty"`
	InterruptBefore json.RawMessage `json:"interrupt_before,omitempty"`
	InterruptAfter  json.RawMessage `json:"interrupt_after,omitempty"`
}

// Failure is why a run ended as Error or Timeout.
type Failure struct {
	Name    string `json:"error"`
	Message string `json:"message"`
}

// Run is one run of a graph on a thread.
type Run struct {
	Ref
	Request
	Created, Updated time.Time
	Status           Status
	// Failure is nil unless the run failed.
	Failure *Failure
	// Interrupts are the questions of a graph that paused for a person: a JSON object by task id, nil when it did not.
	Interrupts json.RawMessage
	// Attempt counts the workers that took the run up.
	Attempt int64
	// Start is the position before the run's first event, Position that of its last.
	Start, Position int64
	// Open is the position before the first chunk of a message that was shown but not finished, 0 when there is none.
	Open int64
	// Checkpoint is the number of the thread's newest checkpoint when the run, or its sealing, last wrote; -1 when there was none.
	Checkpoint int64
	// Dispatches counts the workflow executions that were started for the run.
	Dispatches int64
}

const kind = "run"

// Names of the run item's attributes.
const (
	attrStatus     = "status"
	attrFailure    = "failure"
	attrInterrupts = "interrupts"
	attrAttempt    = "attempt"
	attrStart      = "start"
	attrPosition   = "position"
	attrOpen       = "open"
	attrCheckpoint = "checkpoint"
	attrDispatches = "dispatches"
)

// decode reads a run; lock tells whether an interrupt overtook it while it was pending.
func decode(ref Ref, item *table.Item, lock thread.Lock) (Run, error) {
	if err := record.Check(item, kind); err != nil {
		return Run{}, err
	}
	r := Run{
		Ref:        ref,
		Status:     effective(Status(item.Text(attrStatus)), ref.Run, lock),
		Attempt:    item.Int(attrAttempt),
		Start:      item.Int(attrStart),
		Position:   item.Int(attrPosition),
		Open:       item.Int(attrOpen),
		Checkpoint: item.Int(attrCheckpoint),
		Dispatches: item.Int(attrDispatches),
	}
	var err error
	if r.Created, r.Updated, err = record.Times(item); err != nil {
		return Run{}, err
	}
	if err := record.Decode(item, &r.Request); err != nil {
		return Run{}, err
	}
	if text := item.Text(attrInterrupts); text != "" {
		r.Interrupts = json.RawMessage(text)
	}
	if text := item.Text(attrFailure); text != "" {
		r.Failure = &Failure{}
		if err := json.Unmarshal([]byte(text), r.Failure); err != nil {
			return Run{}, err
		}
	}
	return r, nil
}

// effective is the status that a stored one means: a pending run that is not active, but older than the active one, was superseded
// together with it and needs no write of its own.
func effective(stored Status, run string, lock thread.Lock) Status {
	if stored == Pending && run < lock.Run {
		return Interrupted
	}
	return stored
}
