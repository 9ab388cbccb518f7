package run

import (
	"encoding/json"
	"time"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Event is one event of a run. It is durable before a reader sees it.
type Event struct {
	// Position increases along the thread.
	Position int64 `json:"p"`
	// Name is the kind of event: "metadata", "values", "updates", "messages", "custom", "error",
	// ...
	Name string          `json:"e"`
	Data json.RawMessage `json:"d,omitempty"`
	// Checkpoint is, for "values", the number of the checkpoint whose state the event shows:
	// the state itself is not stored again. Data are members that clients see beside it.
	Checkpoint int64 `json:"c,omitempty"`
	// At is when the event was written. It is set for events that were read.
	At time.Time `json:"-"`
}

// Names of the events that readers of a run see. An agent may stream other events, which are
// passed on unchanged.
const (
	EventMetadata = "metadata" // {run_id, attempt}: a worker took the run up
	EventValues   = "values"   // the state after a step
	EventUpdates  = "updates"  // {node: delta}
	EventMessages = "messages" // [chunk, metadata]
	EventError    = "error"    // {error, message}: the run failed
)

// MemberQuestions is the member with the questions of a graph that pauses, among its updates and
// next to its values.
const MemberQuestions = "__interrupt__"

const eventKind = "events"

// attrEventAttempt is the attempt that wrote a batch of events.
const attrEventAttempt = "attempt"

// putEvents stores a batch, which is never empty. The key of the batch is the position of its
// last event.
func putEvents(ref thread.Ref, now time.Time, attempt int64, events []Event) table.Write {
	last := events[len(events)-1].Position
	return table.Put{
		Item: table.Item{
			Key:   keys.Event(ref.Workspace, ref.Deployment, ref.Thread, last),
			Attrs: record.Attrs(eventKind, now, table.Attrs{attrEventAttempt: attempt}),
			Body:  record.Encode(events),
		},
		If: table.Absent(),
	}
}

// batch is a stored batch of events.
type batch struct {
	events  []Event
	attempt int64
	at      time.Time
}

func decodeEvents(item *table.Item) (batch, error) {
	r := record.Read(item, eventKind)
	b := batch{attempt: item.Int(attrEventAttempt), at: r.Created()}
	r.Decode(&b.events)
	return b, r.Err()
}
