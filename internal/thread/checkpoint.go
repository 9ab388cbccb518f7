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
	// base is the number of the last snapshot, size that one's size; grown is how many bytes of changes lie behind it.
	base, size, grown int64
}

// Empty is the state of a thread without checkpoints.
func Empty() *State { return &State{Values: new(state.Values), At: Checkpoint{Number: -1}} }

const checkpointKind = "checkpoint"

// attrBase is the number of the snapshot that a checkpoint builds on; a snapshot has its own.
const attrBase = "base"

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
func (s *State) Advance(ref Ref, now time.Time, run string, source Source, patch state.Patch) table.Put {
	next := Checkpoint{ID: id.New(now), ParentID: s.At.ID, Number: s.At.Number + 1, Run: run, Source: source, Created: now}
	b := checkpointBody{ID: next.ID, ParentID: next.ParentID, Run: run, Source: source, Patch: &patch}
	encoded := record.Encode(b)
	s.grown += int64(len(encoded))
	if next.Number == 0 || s.grown > max(s.size, snapshotFloor) {
		b.Patch, b.Values = nil, s.Values.JSON()
		encoded = record.Encode(b)
		s.base, s.size, s.grown = next.Number, int64(len(encoded)), 0
	}
	s.At = next
	return table.Put{
		Item: table.Item{
			Key:   keys.Checkpoint(ref.Workspace, ref.Deployment, ref.Thread, next.Number),
			Attrs: record.Attrs(checkpointKind, now, table.Attrs{attrBase: s.base}),
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
	items, err := s.since(ctx, ref, number)
	if err != nil {
		return nil, fmt.Errorf("query checkpoints: %w", err)
	}
	if len(items) == 0 {
		return Empty(), nil
	}
	return replay(items)
}

// firstLook is how many checkpoints are read before it is known where the snapshot is.
const firstLook = 8

// since returns the stored checkpoints from one back to the snapshot that it builds on, newest first, none when there are none.
func (s *Store) since(ctx context.Context, ref Ref, number int64) ([]*table.Item, error) {
	if number < 0 {
		return nil, nil
	}
	query := keys.Checkpoints(ref.Workspace, ref.Deployment, ref.Thread, number)
	query.Limit = firstLook
	page, err := s.table.Query(ctx, query)
	if err != nil || len(page.Items) == 0 {
		return nil, err
	}
	newest, err := keys.CheckpointNumber(page.Items[0].Key)
	if err != nil {
		return nil, err
	}
	base, read := page.Items[0].Int(attrBase), int64(len(page.Items))
	if missing := newest - base + 1 - read; missing <= 0 {
		return page.Items[:newest-base+1], nil
	}
	query = keys.Checkpoints(ref.Workspace, ref.Deployment, ref.Thread, newest-read)
	query.From = keys.Checkpoint(ref.Workspace, ref.Deployment, ref.Thread, base).SK
	rest, err := table.AllItems(ctx, s.table, query)
	return append(page.Items, rest...), err
}

// replay applies changes, newest first, to the snapshot that comes last.
func replay(items []*table.Item) (*State, error) {
	last := len(items) - 1
	b, err := decodeCheckpoint(items[last])
	if err != nil {
		return nil, err
	}
	if b.Values == nil {
		return nil, fmt.Errorf("checkpoint %v is no snapshot", items[last].Key)
	}
	s := &State{base: items[last].Int(attrBase), size: int64(len(items[last].Body))}
	if s.Values, err = state.Parse(b.Values); err != nil {
		return nil, fmt.Errorf("snapshot %v: %w", items[last].Key, err)
	}
	for _, item := range slices.Backward(items[:last]) {
		if b, err = decodeCheckpoint(item); err != nil {
			return nil, err
		}
		if b.Patch == nil {
			return nil, fmt.Errorf("checkpoint %v is no change", item.Key)
		}
		if err := s.Values.Apply(*b.Patch); err != nil {
			return nil, fmt.Errorf("checkpoint %v: %w", item.Key, err)
		}
		s.grown += int64(len(item.Body))
	}
	s.At, err = checkpoint(items[0], b)
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
	return b, nil
}

// BusyFault is the fault of a request that a thread's run in flight does not allow.
func BusyFault(ref Ref) error {
	return fault.New(fault.Conflict, "Thread %s is already running a task. Wait for it to finish or choose a different multitask strategy.", ref.Thread)
}
