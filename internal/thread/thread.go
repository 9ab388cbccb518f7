package thread

import (
	"encoding/json"
	"time"

	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/table"
)

// Ref names a thread. Every read and write begins with the workspace.
type Ref struct {
	Workspace, Deployment, Thread string
}

// Key is the thread's storage key.
func (r Ref) Key() table.Key { return keys.Thread(r.Workspace, r.Deployment, r.Thread) }

// Status is what a thread shows of its runs.
type Status string

const (
	// StatusIdle: no run is in flight.
	StatusIdle Status = "idle"
	// StatusBusy: a run is in flight.
	StatusBusy Status = "busy"
	// StatusInterrupted: the last run paused for a person.
	StatusInterrupted Status = "interrupted"
	// StatusError: the last run failed.
	StatusError Status = "error"
)

// Thread is a conversation.
type Thread struct {
	Ref
	Created, Updated time.Time
	Status           Status
	// Metadata is a JSON object.
	Metadata json.RawMessage
	// Interrupts are the questions that a paused graph waits on, by task id: a JSON object.
	Interrupts json.RawMessage
	Lock       Lock
}

// Lock orders the runs of a thread. Run ids sort by the order of creation on their thread, so a pending run whose id is smaller than
// the active one's was overtaken by an interrupt.
type Lock struct {
	// Epoch counts the changes of the lock.
	Epoch int64
	// Run is the active run, or the last that was; "" before the first.
	Run string
	// Busy says that Run is in flight.
	Busy bool
	// Last is the newest run of the thread: Run, or one that waits behind it.
	Last string
	// Sealed is the newest run of which everything worth keeping is in the state.
	Sealed string
	// Unsealed says that an interrupt left runs between Sealed and Run that are not folded into the state yet.
	Unsealed bool
	// Position is that of the last event of the sealed runs.
	Position int64
	// Checkpoint is the number of the newest checkpoint of the sealed runs, -1 when there is none.
	Checkpoint int64
}

const kind = "thread"

// Names of the thread item's attributes.
const (
	AttrStatus     = "status"
	AttrEpoch      = "epoch"
	AttrRun        = "run"
	AttrBusy       = "busy"
	AttrLast       = "last"
	AttrSealed     = "sealed"
	AttrUnsealed   = "unsealed"
	AttrPosition   = "position"
	AttrCheckpoint = "checkpoint"
	attrInterrupts = "interrupts"
)

// body is what the thread's item holds beside its attributes.
type body struct {
	Metadata json.RawMessage `json:"metadata"`
}

func decode(ref Ref, item *table.Item) (Thread, error) {
	if err := record.Check(item, kind); err != nil {
		return Thread{}, err
	}
	created, updated, err := record.Times(item)
	if err != nil {
		return Thread{}, err
	}
	var b body
	if err := record.Decode(item, &b); err != nil {
		return Thread{}, err
	}
	t := Thread{
		Ref: ref, Created: created, Updated: updated,
		Status:     Status(item.Text(AttrStatus)),
		Metadata:   b.Metadata,
		Interrupts: json.RawMessage("{}"),
		Lock: Lock{
			Epoch:      item.Int(AttrEpoch),
			Run:        item.Text(AttrRun),
			Busy:       item.Bool(AttrBusy),
			Last:       item.Text(AttrLast),
			Sealed:     item.Text(AttrSealed),
			Unsealed:   item.Bool(AttrUnsealed),
			Position:   item.Int(AttrPosition),
			Checkpoint: item.Int(AttrCheckpoint),
		},
	}
	if questions := item.Text(attrInterrupts); questions != "" {
		t.Interrupts = json.RawMessage(questions)
	}
	return t, nil
}

// ChangeLock returns the write that changes a thread's lock under the condition that its epoch is the one that was read; every such change
// counts the epoch up.
func (t Thread) ChangeLock(now time.Time, set table.Attrs) table.Update {
	change := record.Change(t.Key(), now, set, table.Equals(AttrEpoch, t.Lock.Epoch))
	change.Add[AttrEpoch] = 1
	return change
}

// PauseAttrs are the attributes of a thread whose run paused with questions: an object of interrupts by task id, or nil.
func PauseAttrs(interrupts json.RawMessage) table.Attrs {
	return table.Attrs{attrInterrupts: string(interrupts)}
}
