package thread

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/id"
	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/state"
	"github.com/slipway-run/slipway/internal/table"
)

// Source says what made a checkpoint.
type Source string

const (
	// SourceInput: the input of a run.
	SourceInput Source = "input"
	// SourceLoop: a step of a graph.
	SourceLoop Source = "loop"
	// SourceUpdate: the server itself, which kept what an unfinished run had shown.
	SourceUpdate Source = "update"
)

// Checkpoint is one step of a thread's state.
type Checkpoint struct {
	ID, ParentID string
	// Number counts along the thread from 0.
	Number  int64
	Run     string
	Source  Source
	Created time.Time
}

// Step is the number that clients see: -1 for the thread's first input.
func (c Checkpoint) Step() int64 { return c.Number - 1 }

// State is a thread's state at a checkpoint. It belongs to one goroutine.
type State struct {
	Values *state.Values
	// At is the checkpoint, the zero Checkpoint with Number -1 when the thread has none.
	At Checkpoint
	// grown is how many bytes of changes lie behind the last snapshot, snapshot is that one's size.
	grown, snapshot int64
}

// Empty is the state of a thread without checkpoints.
func Empty() *State { return &State{Values: new(state.Values), At: Checkpoint{Number: -1}} }

const checkpointKind = "checkpoint"

// snapshotFloor is how many bytes of changes are read rather than saved by a snapshot, however small the state is.
const snapshotFloor = 64 << 10

// checkpointBody holds either Patch or, in a snapshot, Values.
type checkpointBody struct {
	ID       string          `json:"id"`
	ParentID string          `json:"parent_id,omitempty"`
	Run      string          `json:"run"`
	Source   Source          `json:"source"`
	Patch    *state.Patch    `json:"patch,omitempty"`
	Values   json.RawMessage `json:"values,omitempty"`
}

// Advance records a change that was already made to s.Values as the next checkpoint, and returns the write that stores it. The write must
// be part of a transaction that also proves the right to write (the run's fence).
func (s *State) Advance(ref Ref, now time.Time, run string, source Source, patch state.Patch) table.Write {
	next := Checkpoint{ID: id.New(now), ParentID: s.At.ID, Number: s.At.Number + 1, Run: run, Source: source, Created: now}
	b := checkpointBody{ID: next.ID, ParentID: next.ParentID, Run: run, Source: source, Patch: &patch}
	encoded := record.Encode(b)
	s.grown += int64(len(encoded))
	if next.Number == 0 || s.grown > max(s.snapshot, snapshotFloor) {
		b.Patch, b.Values = nil, s.Values.JSON()
		encoded = record.Encode(b)
		s.grown, s.snapshot = 0, int64(len(encoded))
	}
	s.At = next
	return table.Put{
		Item: table.Item{
			Key:   keys.Checkpoint(ref.Workspace, ref.Deployment, ref.Thread, next.Number),
			Attrs: record.Attrs(checkpointKind, now, nil),
			Body:  encoded,
		},
		If: table.Absent(),
	}
}

// State returns the thread's newest stored state.
func (s *Store) State(ctx context.Context, ref Ref) (*State, error) {
	return s.StateAt(ctx, ref, math.MaxInt32)
}

// StateAt returns the state at a checkpoint, or at the newest before it.
func (s *Store) StateAt(ctx context.Context, ref Ref, number int64) (*State, error) {
	if number < 0 {
		return Empty(), nil
	}
	query := keys.Checkpoints(ref.Workspace, ref.Deployment, ref.Thread, number)
	query.Limit = 64
	var changes []change
	for {
		page, err := s.table.Query(ctx, query)
		if err != nil {
			return nil, fmt.Errorf("query checkpoints: %w", err)
		}
		for _, item := range page.Items {
			b, err := decodeCheckpoint(item)
			if err != nil {
				return nil, err
			}
			if b.Values != nil {
				return replay(change{item, b}, changes)
			}
			changes = append(changes, change{item, b})
		}
		if page.Cursor == "" {
			break
		}
		query.Cursor = page.Cursor
	}
	if len(changes) > 0 {
		return nil, fmt.Errorf("thread %s has changes but no snapshot", ref.Thread)
	}
	return Empty(), nil
}

// change is a stored checkpoint with its decoded body.
type change struct {
	item *table.Item
	body checkpointBody
}

// replay applies the changes, newest first, to the snapshot before them.
func replay(snapshot change, changes []change) (*State, error) {
	values, err := state.Parse(snapshot.body.Values)
	if err != nil {
		return nil, fmt.Errorf("snapshot %v: %w", snapshot.item.Key, err)
	}
	s := &State{Values: values, snapshot: int64(len(snapshot.item.Body))}
	newest := snapshot
	for _, newest = range slices.Backward(changes) {
		if err := values.Apply(*newest.body.Patch); err != nil {
			return nil, fmt.Errorf("checkpoint %v: %w", newest.item.Key, err)
		}
		s.grown += int64(len(newest.item.Body))
	}
	s.At, err = checkpoint(newest.item, newest.body)
	return s, err
}

func checkpoint(item *table.Item, b checkpointBody) (Checkpoint, error) {
	number, err := keys.CheckpointNumber(item.Key)
	if err != nil {
		return Checkpoint{}, err
	}
	created, err := clock.Parse(item.Text(record.Created))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint %v: %w", item.Key, err)
	}
	return Checkpoint{ID: b.ID, ParentID: b.ParentID, Number: number, Run: b.Run, Source: b.Source, Created: created}, nil
}

func decodeCheckpoint(item *table.Item) (checkpointBody, error) {
	var b checkpointBody
	if err := record.Check(item, checkpointKind); err != nil {
		return b, err
	}
	if err := record.Decode(item, &b); err != nil {
		return b, err
	}
	if b.Patch == nil && b.Values == nil {
		return b, fmt.Errorf("checkpoint %v holds neither a change nor a snapshot", item.Key)
	}
	return b, nil
}

// BusyFault is the fault of a request that a thread's run in flight does not allow.
func BusyFault(ref Ref) error {
	return fault.New(fault.Conflict, "Thread %s is already running a task. Wait for it to finish or choose a different multitask strategy.", ref.Thread)
}
