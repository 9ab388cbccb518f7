package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// inlineRequest is how large a request may be, in bytes, to be stored in its run's item. Each
// flush of the run writes that item again, and pays for everything in it. A larger request has
// an item of its own, which is written once.
const inlineRequest = 512

const requestKind = "run_request"

// GraphInput returns the input that the graph takes: a command that does something takes the place
// of the input.
func (r *Request) GraphInput() Input {
	var command struct{ Update, Resume, Goto json.RawMessage }
	if len(r.Command) == 0 || json.Unmarshal(r.Command, &command) != nil {
		return r.Input
	}
	for _, part := range []json.RawMessage{command.Update, command.Resume, command.Goto} {
		if state.Present(part) != nil {
			return Input{}
		}
	}
	return r.Input
}

// size returns approximately how many bytes storing the request takes.
func (r *Request) size() int {
	return len(r.Input.JSON()) + len(r.Command) + len(r.Config) + len(r.Context) + len(r.Metadata)
}

// store returns the request as the body of the run's item, and the write of its payload if
// the request is too large for the item.
func (r Request) store(ref Ref, now time.Time) (body []byte, bulk *table.Put) {
	if body = record.Encode(r); len(body) <= inlineRequest {
		return body, nil
	}
	put := record.New(keys.RunRequest(ref.Workspace, ref.Deployment, ref.Thread, ref.Run), requestKind, now, nil, record.Encode(r.Payload))
	r.Payload = Payload{}
	return record.Encode(r), &put
}

// loadBulk completes the requests of runs. It returns record.ErrLost if a run was removed since it
// was read: the same transaction removes its request.
func (s *Store) loadBulk(ctx context.Context, runs ...*Run) error {
	var detached []*Run
	for _, run := range runs {
		if run.Detached {
			detached = append(detached, run)
		}
	}
	for some := range slices.Chunk(detached, table.MaxWrites) {
		wanted := make([]table.Key, len(some))
		for i, run := range some {
			wanted[i] = keys.RunRequest(run.Workspace, run.Deployment, run.Thread, run.Run)
		}
		items, err := s.Table.GetBatch(ctx, wanted...)
		if err != nil {
			return fmt.Errorf("get requests: %w", err)
		}
		for i, item := range items {
			if item == nil {
				return fmt.Errorf("load request of run %s: %w", some[i].Run, record.ErrLost)
			}
			r := record.Read(item, requestKind)
			if r.Decode(&some[i].Payload); r.Err() != nil {
				return r.Err()
			}
			some[i].Detached, some[i].Bulk = false, 0
		}
	}
	return nil
}

// Kwargs returns the parameters that the run was created with.
func (r Run) Kwargs() json.RawMessage {
	return record.Encode(map[string]any{
		"input": r.Input, "command": r.Command, "config": state.OrEmpty(r.Config), "context": state.OrEmpty(r.Context), "stream_mode": r.StreamModes,
		"interrupt_before": r.InterruptBefore, "interrupt_after": r.InterruptAfter, "subgraphs": r.StreamSubgraphs, "temporary": r.Temporary,
		"feedback_keys": r.FeedbackKeys, "webhook": optional.Of(r.Webhook),
	})
}

// ShownMetadata returns the metadata as clients see it. It names the run's own assistant and graph:
// the metadata of the thread, which is part of the run's, may name other assistants and graphs.
func (r Run) ShownMetadata() json.RawMessage {
	metadata, err := thread.Named(r.Metadata, r.AssistantID, r.Graph)
	if err != nil {
		return json.RawMessage("{}") // it was checked when the run was created
	}
	return metadata
}
