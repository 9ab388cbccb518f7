package run

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
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
	// Caller is who asked. Clients are not shown it.
	Caller *graph.Caller `json:"caller,omitempty"`
	// Fork is the checkpoint to go on from, nil for the newest.
	Fork *Fork `json:"fork,omitempty"`
	// Durability is "sync", "async" or "exit", "" when the client did not say.
	Durability string `json:"durability,omitempty"`
	// StreamSubgraphs asks for the events of subgraphs too.
	StreamSubgraphs bool `json:"stream_subgraphs,omitempty"`
	// FeedbackKeys are kept for who reads the run.
	FeedbackKeys []string `json:"feedback_keys,omitempty"`
	// Webhook is the address that is told of the run's end, "" for none. It was checked.
	Webhook string `json:"webhook,omitempty"`
	// Temporary says that the run's thread was made for it alone, and goes some time after it.
	Temporary bool `json:"temporary,omitempty"`
	// After is how long the run waits before it may start.
	After time.Duration `json:"after,omitempty"`
	// ID names the first run of a thread, "" for a new name. That of a delayed run tells when it is
	// due.
	ID string `json:"-"`
	// Notes are written together with the run.
	Notes []record.Note[Run] `json:"-"`
}

// Fork names a checkpoint of the thread. Number is where it is.
type Fork struct {
	ID     string          `json:"id"`
	NS     string          `json:"ns,omitempty"`
	Map    json.RawMessage `json:"map,omitempty"`
	Number int64           `json:"number"`
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
	// CancelReason is why the run is Interrupted.
	CancelReason Reason
	// Interrupts are the questions of a graph that paused for a person: a JSON object by task id,
	// nil when it did not.
	Interrupts json.RawMessage
	// Answers are the ids of the questions of its thread that the run was created to answer.
	Answers []string
	// Due is when a delayed run may start, Started when a worker took the run up first; zero when
	// neither is so.
	Due, Started time.Time
	// Attempt counts the workers that took the run up.
	Attempt int64
	// Handed is the last attempt that handed the run over to the next, 0 when there was none, -1
	// when the run was last written by a version that had no slices. The other attempts before the
	// present one are among Failures.
	Handed int64
	// Failures counts the attempts that ended without having handed the run over.
	Failures int64
	// Idle counts the slices since the last one that made a step.
	Idle int64
	// Start is the position before the run's first event, Position that of its last.
	Start, Position int64
	// Unfinished are the messages that were shown and are to be kept if the run ends now, of all
	// its attempts.
	Unfinished []Unfinished
	// Unfolded is the position before the first update that was shown since the agent's own newest
	// checkpoint, 0 when there is none.
	Unfolded int64
	// Before is the number of the thread's newest checkpoint when the run was taken up first, -1
	// when there was none: with it the thread was as if the run had never been.
	Before int64
	// Checkpoint is the number of the thread's newest checkpoint when the run, or its sealing, last
	// wrote; -1 when there was none.
	Checkpoint int64
	// Mark and Place are where the results of tasks are kept behind those of earlier runs: the
	// number of the agent's checkpoint when the run was taken up first, -1 without one, and how
	// many items lie behind it.
	Mark, Place int64
	// Amended says that the run said anew what became of the tasks of an earlier checkpoint, which
	// is kept as it was until the run is over.
	Amended bool
	// Permit is the permit that the run has among those of its deployment, 0 for none.
	Permit int64
	// Dispatches counts the workflow executions that were started for the run.
	Dispatches int64
	// Detached says that the large part of the request is in an item of its own, which was not
	// read.
	Detached bool
	// Bulk is how many bytes that has, 0 when it was read, or is not known.
	Bulk int64
}

const kind = "run"

// Names of the run item's attributes. Failure and interrupts may be large, but are written once,
// when the run ends; its body is the request, which would have to be written again with them, if it
// is small.
const (
	attrStatus     = "status"
	attrFailure    = "failure"
	attrInterrupts = "interrupts"
	attrAnswers    = "answers"
	attrAttempt    = "attempt"
	attrHanded     = "handed"
	attrFailures   = "failures"
	attrIdle       = "idle"
	attrStart      = "start"
	attrPosition   = "position"
	attrUnfinished = "unfinished"
	attrUnfolded   = "unfolded"
	attrBefore     = "before"
	attrDetached   = "detached"
	attrBulk       = "bulk"
	attrCheckpoint = "checkpoint"
	attrDispatches = "dispatches"
	attrDue        = "due"
	attrStarted    = "started"
	attrMark       = "mark"
	attrPlace      = "place"
	attrAmended    = "amended"
	attrPermit     = "seat"

	attrCancelReason = "cancel_reason"
)

// decode reads a run; lock tells whether an interrupt overtook it while it was pending.
func decode(ref Ref, item *table.Item, lock thread.Lock) (Run, error) { //nolint:cyclop // one step for each attribute
	if err := record.Check(item, kind); err != nil {
		return Run{}, err
	}
	r := Run{
		Ref:        ref,
		Status:     effective(Status(item.Text(attrStatus)), ref.Run, lock),
		Attempt:    item.Int(attrAttempt),
		Handed:     -1,
		Failures:   item.Int(attrFailures),
		Idle:       item.Int(attrIdle),
		Start:      item.Int(attrStart),
		Position:   item.Int(attrPosition),
		Unfolded:   item.Int(attrUnfolded),
		Before:     -1,
		Detached:   item.Bool(attrDetached),
		Bulk:       item.Int(attrBulk),
		Checkpoint: item.Int(attrCheckpoint),
		Dispatches: item.Int(attrDispatches),
		Mark:       -1,
		Place:      item.Int(attrPlace),
		Amended:    item.Bool(attrAmended),
		Permit:     item.Int(attrPermit),
	}
	if r.CancelReason = Reason(item.Text(attrCancelReason)); r.CancelReason == "" && r.Status == Interrupted && item.Text(attrStatus) == string(Pending) {
		r.CancelReason = Reason(lock.OvertakenWhy)
	}
	if mark, ok := item.Attrs[attrMark].(int64); ok {
		r.Mark = mark
	}
	if handed, ok := item.Attrs[attrHanded].(int64); ok {
		r.Handed = handed
	}
	if before, ok := item.Attrs[attrBefore].(int64); ok {
		r.Before = before
	}
	var err error
	if r.Created, r.Updated, err = record.Times(item); err != nil {
		return Run{}, err
	}
	if r.Due, err = record.Time(item, attrDue); err != nil {
		return Run{}, err
	}
	if r.Started, err = record.Time(item, attrStarted); err != nil {
		return Run{}, err
	}
	if err := record.Decode(item, &r.Request); err != nil {
		return Run{}, err
	}
	if text := item.Text(attrUnfinished); text != "" {
		if err := json.Unmarshal([]byte(text), &r.Unfinished); err != nil {
			return Run{}, fmt.Errorf("decode unfinished messages: %w", err)
		}
	}
	if text := item.Text(attrAnswers); text != "" {
		if err := json.Unmarshal([]byte(text), &r.Answers); err != nil {
			return Run{}, fmt.Errorf("decode ids of answers: %w", err)
		}
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

// effective is the status that a stored one means: a pending run that was superseded, or rolled
// back, together with the active one needed no write of its own.
func effective(stored Status, run string, lock thread.Lock) Status {
	switch {
	case stored != Pending:
		return stored
	case lock.Removes(run):
		return Removed
	case run <= lock.Overtaken:
		return Interrupted
	}
	return stored
}
