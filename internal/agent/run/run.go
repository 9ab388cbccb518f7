package run

import (
	"cmp"
	"encoding/json"
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

// Payload is the part of a request whose size is up to the client.
type Payload struct {
	// All fields but Caller are JSON as the client sent it; nil when absent.
	Input           Input           `json:"input,omitzero"`
	Command         json.RawMessage `json:"command,omitempty"`
	Config          json.RawMessage `json:"config,omitempty"`
	Context         json.RawMessage `json:"context,omitempty"`
	Metadata        json.RawMessage `json:"metadata,omitempty"`
	Tracer          json.RawMessage `json:"tracer,omitempty"`
	InterruptBefore json.RawMessage `json:"interrupt_before,omitempty"`
	InterruptAfter  json.RawMessage `json:"interrupt_after,omitempty"`
	// Caller is the caller that sent the request. Clients do not see it.
	Caller *graph.Caller `json:"caller,omitempty"`
}

// Request is the request of the client that created the run; it never changes.
type Request struct {
	AssistantID string   `json:"assistant_id"`
	Graph       string   `json:"graph"`
	Strategy    Strategy `json:"multitask_strategy"`
	// StreamModes are the kinds of events for readers that do not ask for other kinds.
	StreamModes []string `json:"stream_mode"`
	Payload

	// Fork is the checkpoint to go on from, nil for the newest checkpoint.
	Fork *Fork `json:"fork,omitempty"`
	// Durability is "sync", "async" or "exit", "" if the client did not set it.
	Durability string `json:"durability,omitempty"`
	// StreamSubgraphs asks for the events of subgraphs too.
	StreamSubgraphs bool `json:"stream_subgraphs,omitempty"`
	// StrictResume refuses an answer to a question that the thread does not wait on.
	StrictResume bool `json:"-"`
	// FeedbackKeys are stored for the readers of the run.
	FeedbackKeys []string `json:"feedback_keys,omitempty"`
	// Webhook is the address that is notified of the run's end, "" for no address. It was
	// checked.
	Webhook string `json:"webhook,omitempty"`
	// Temporary says that the run's thread was created for this run alone, and is removed some
	// time after the run.
	Temporary bool `json:"temporary,omitempty"`
	// After is how long the run waits before it may start.
	After time.Duration `json:"after,omitempty"`
	// ID names the first run of a thread, "" for a new name. The id of a delayed run contains
	// the time when the run is due.
	ID string `json:"-"`
	// Notes are written together with the run.
	Notes []record.Note[Run] `json:"-"`
	// Streamed says that the client which creates the run reads its events as they come.
	Streamed bool `json:"-"`
}

// Fork names a checkpoint of the thread. Number is the checkpoint's number.
type Fork struct {
	ID     string          `json:"id"`
	Map    json.RawMessage `json:"map,omitempty"`
	Number int64           `json:"number"`
}

// Run is one run of a graph on a thread: the data that clients see, and the run's progress,
// which only its workers use.
type Run struct {
	Ref
	Request
	Created, Updated time.Time
	Status           Status
	// Failure is nil unless the run failed.
	Failure *Failure
	// Refusal is set for a run that failed before it began, because it answers questions that
	// the thread did not wait on.
	Refusal *Refusal
	// CancelReason is why the run is Interrupted.
	CancelReason Reason
	// Interrupts are the questions of a graph that paused for a person: a JSON object by task
	// id, nil if the graph did not pause.
	Interrupts json.RawMessage
	// Answers are the ids of the thread's questions that the run was created to answer.
	Answers []string
	// Due is when a delayed run may start, zero if the run is not delayed. Started is when a
	// worker first claimed the run, zero before; the time for which an agent was absent since is
	// left out. Absent is when the last worker gave the run back because no agent took it, zero
	// while a worker has the run.
	Due, Started, Absent time.Time
	// Detached says that the large part of the request is in an item of its own, which was not
	// read. Bulk is the size of that part in bytes, 0 if it was read or its size is not known.
	Detached bool
	Bulk     int64
	// HasReader says that a reader waits, or has waited, for the run's events as they come. It
	// is set only if Config.Paced is.
	HasReader bool
	// EndNotified says that the webhook and the Observer have the run's end already, because the
	// run was cancelled in the queue.
	EndNotified bool

	Progress
}

const kind = "run"

// Names of the run item's attributes, except the attributes of its progress. Failure and
// interrupts may be large, but they are written once, when the run ends. If the request is
// small, it is the item's body: in the body, failure and interrupts would have to be written
// again with the request.
const (
	attrStatus       = "status"
	attrFailure      = "failure"
	attrRefusal      = "refusal"
	attrInterrupts   = "interrupts"
	attrAnswers      = "answers"
	attrDetached     = "detached"
	attrBulk         = "bulk"
	attrDue          = "due"
	attrStarted      = "started"
	attrAbsent       = "absent"
	attrCancelReason = "cancel_reason"
	attrEndNotified  = "told"
	attrHasReader    = "watched" // the name of HasReader in an earlier version
)

// decode reads a run. The lock says whether an interrupt superseded the run while the run was
// pending, and when.
func decode(ref Ref, item *table.Item, lock thread.Lock) (Run, error) {
	read := record.Read(item, kind)
	r := Run{
		Ref:          ref,
		Created:      read.Created(),
		Updated:      read.Updated(),
		Status:       effective(Status(read.Text(attrStatus)), ref.Run, lock),
		CancelReason: Reason(read.Text(attrCancelReason)),
		Due:          read.Time(attrDue),
		Started:      read.Time(attrStarted),
		Absent:       read.Time(attrAbsent),
		Detached:     read.Bool(attrDetached),
		Bulk:         read.Int(attrBulk),
		HasReader:    read.Int(attrHasReader) > 0,
		EndNotified:  read.Bool(attrEndNotified),
		Progress:     progressOf(&read),
	}
	if r.Status == Interrupted && read.Text(attrStatus) == string(Pending) {
		r.CancelReason = cmp.Or(r.CancelReason, Reason(lock.SupersedeReason))
		if !lock.SupersededAt.IsZero() {
			r.Updated = lock.SupersededAt
		}
	}
	if text := read.Text(attrInterrupts); text != "" {
		r.Interrupts = json.RawMessage(text)
	}
	read.Decode(&r.Request)
	read.JSON(attrAnswers, &r.Answers)
	read.JSON(attrFailure, &r.Failure)
	read.JSON(attrRefusal, &r.Refusal)
	return r, read.Err()
}

// decodeOn is decode for an item of the given thread. The item's key names the run.
func decodeOn(ref thread.Ref, item *table.Item, lock thread.Lock) (Run, error) {
	return decode(Ref{Ref: ref, Run: keys.RunID(item.Key)}, item, lock)
}

// effective returns the status that a stored status means. A pending run that was superseded
// or rolled back together with the active run has no write of its own. So an interrupt of a
// thousand queued runs writes no item of a queued run.
func effective(stored Status, run string, lock thread.Lock) Status {
	switch {
	case stored != Pending:
		return stored
	case lock.Removes(run):
		return Removed
	case run <= lock.SupersededUpTo:
		return Interrupted
	}
	return stored
}
