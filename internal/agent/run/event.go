package run

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

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

// memberMetadata is the member among updates that says something about all of them.
const memberMetadata = "__metadata__"

const eventKind = "events"

// attrEventAttempt is the attempt that wrote a batch of events, attrEventAttemptFirst the position
// of the first event of this attempt. Stored batches keep the former name of the second attribute.
const (
	attrEventAttempt      = "attempt"
	attrEventAttemptFirst = "claim"
)

// putEvents stores a batch, which is never empty. The key of the batch is the position of its
// last event. A void batch of an earlier worker may stand there, and is replaced.
func (d *draft) putEvents(now time.Time) table.Put {
	last := d.events[len(d.events)-1].Position
	key := keys.Event(d.Run.Workspace, d.Run.Deployment, d.Run.Thread, last)
	own := table.Attrs{attrEventAttempt: d.Run.Attempt, attrEventAttemptFirst: d.attemptFirst}
	item := record.Item(key, eventKind, now, own, record.Encode(d.events))
	return table.Put{Item: item, If: table.AbsentOrBelow(attrEventAttemptFirst, d.attemptFirst+1)}
}

// batch is a stored batch of events.
type batch struct {
	events []Event
	// attempt is the attempt that wrote it, attemptFirst the position of the attempt's first event,
	// 0 if a version wrote it that knew no void batches.
	attempt, attemptFirst int64
	at                    time.Time
}

func (b batch) last() int64 { return b.events[len(b.events)-1].Position }

// batches reads the batches with the events after a position, up to the position that the run had
// when it was read. An eventual read costs half, and may lack batches.
func (s *Store) batches(ctx context.Context, run *Run, after int64, eventual bool) iter.Seq2[batch, error] {
	query := keys.Events(run.Workspace, run.Deployment, run.Thread, after, run.Position)
	query.Eventual = eventual
	query.Limit, query.Bytes = streamPage, streamBytes
	return func(yield func(batch, error) bool) {
		for item, err := range table.Items(ctx, s.Table, query) {
			if err != nil {
				yield(batch{}, fmt.Errorf("query events of run %s: %w", run.Run, err))
				return
			}
			r := record.Read(item, eventKind)
			b := batch{attempt: r.Int(attrEventAttempt), attemptFirst: r.Int(attrEventAttemptFirst), at: r.Created()}
			r.Decode(&b.events)
			if r.Err() == nil && run.isVoid(b.attemptFirst, b.last()) {
				continue
			}
			if !yield(b, r.Err()) || r.Err() != nil {
				return
			}
		}
	}
}
