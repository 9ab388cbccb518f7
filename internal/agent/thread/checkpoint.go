package thread

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Source says how a checkpoint was made.
type Source string

const (
	// SourceInput: the input of a run.
	SourceInput Source = "input"
	// SourceLoop: a step of a graph.
	SourceLoop Source = "loop"
	// SourceUpdate: a client, or the server itself when it kept the shown output of an
	// unfinished run.
	SourceUpdate Source = "update"
	// SourceFork: a run that goes on from an earlier checkpoint, without an input.
	SourceFork Source = "fork"
)

// Checkpoint is one step of a thread's state. Either the server made it, from an input or from
// a node's update, or the agent made it and gave it a name.
type Checkpoint struct {
	ID       string `json:"id"`
	ParentID string `json:"parent_id,omitempty"`
	// Number counts along the thread from 0, Step along the branch from -1, as clients see it.
	Number  int64     `json:"-"`
	Step    int64     `json:"step"`
	Run     string    `json:"run"`
	Graph   string    `json:"graph,omitempty"`
	Source  Source    `json:"source"`
	Created time.Time `json:"-"`
	// Next, Tasks and Metadata are the agent's data about its checkpoint; nil for a checkpoint
	// that the server made.
	Next     []string        `json:"next,omitempty"`
	Tasks    json.RawMessage `json:"tasks,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// Agent is the agent's newest checkpoint on this branch, including this checkpoint; nil
	// before the agent's first checkpoint.
	Agent *AgentCheckpoint `json:"agent,omitempty"`
	// First is the number of the first checkpoint that the server itself has made since Agent. All
	// checkpoints from First to this one are the server's, and the agent lacks their changes. A
	// checkpoint of the agent's own contains the changes of the server's checkpoints before it:
	// there First is the number of the first of these, or its own number if there are none.
	First int64 `json:"first"`
	// Folded says that the server has folded a node's update into the state: the agent keeps no
	// checkpoints.
	Folded bool `json:"folded,omitempty"`
}

// AgentCheckpoint is an agent's own checkpoint.
type AgentCheckpoint struct {
	Number int64  `json:"number"`
	ID     string `json:"id"`
	// Lasting lists the lasting subgraphs. Each has the number of the agent's checkpoint at which
	// it was stored last.
	Lasting []LastingSubgraph `json:"keep,omitempty"`
}

// LastingSubgraph says where the checkpoint of a lasting subgraph is stored.
type LastingSubgraph struct {
	NS     string `json:"ns"`
	Number int64  `json:"number"`
}

// Own reports whether the agent made the checkpoint.
func (c Checkpoint) Own() bool { return c.Agent != nil && c.Agent.Number == c.Number }

// Parent returns the id of the checkpoint from which the checkpoint follows. For the first
// checkpoint of a branch that begins at the empty state, it is the thread's root, unless the agent
// made the checkpoint: the agent knows only its own checkpoints.
func (c Checkpoint) Parent(ref Ref) string {
	if c.followsRoot() {
		return ref.Root()
	}
	return c.ParentID
}

// followsRoot reports whether the checkpoint follows the thread's root. The oldest checkpoint of a
// thread whose history was removed has no parent either, but comes later in its branch.
func (c Checkpoint) followsRoot() bool {
	return c.ParentID == "" && !c.Own() && c.Step == Empty().At.Step+1
}

// State is a thread's state at a checkpoint. It never changes.
type State struct {
	Values state.Values
	// At is the checkpoint; if the thread has no checkpoint, it is the zero Checkpoint with
	// Number -1.
	At Checkpoint
	// base is the number of the last snapshot, size the size of this snapshot; grown is how
	// many bytes of changes lie behind it.
	base, size, grown int64
	// stored is what is stored with At, sum the hash of the stored body.
	stored contents
	sum    uint64
}

// Empty returns the state of a thread without checkpoints.
func Empty() State { return State{At: Checkpoint{Number: -1, Step: -2}} }

// Root shows the empty state as the oldest checkpoint of a thread that has checkpoints.
func Root(ref Ref) Snapshot {
	root := Empty().Snapshot()
	root.ID, root.Newest = ref.Root(), false
	return root
}

const checkpointKind = "checkpoint"

// attrBase is the number of the snapshot that a checkpoint builds on; for a snapshot it is its
// own number.
const attrBase = "base"

// snapshotFloor is how many bytes of changes may be stored without a snapshot, however small
// the state is.
const snapshotFloor = 64 << 10

// checkpointBody is the body of a checkpoint's item.
type checkpointBody struct {
	Checkpoint
	contents
}

// contents holds either Patch or, in a snapshot, Values.
type contents struct {
	Patch  *state.Patch    `json:"patch,omitempty"`
	Values json.RawMessage `json:"values,omitempty"`
	// Results is what the tasks of the previous checkpoint have returned (results.go).
	Results []byte `json:"results,omitempty"`
	// Pending are the updates that led to this checkpoint. An update without values stands for
	// the state itself, which was empty before.
	Pending []graph.StateUpdate `json:"pending,omitempty"`
}

func keyOf(ref Ref, number int64) table.Key {
	return keys.Checkpoint(ref.Workspace, ref.Deployment, ref.Thread, number)
}

// item returns the item of the checkpoint.
func (s State) item(ref Ref) table.Item {
	own, body := table.Attrs{attrBase: s.base}, record.Encode(checkpointBody{s.At, s.stored})
	return record.Item(keyOf(ref, s.At.Number), checkpointKind, s.At.Created, own, body)
}

// numberDigits is how many digits at the end of an id that the server made are its checkpoint's
// number.
const numberDigits = 8

func digits(number int64) string { return fmt.Sprintf("%0*x", numberDigits, uint32(number)) }

// numbered returns an id that contains the number of its checkpoint.
func numbered(now time.Time, number int64) string {
	full := id.New(now)
	return full[:len(full)-numberDigits] + digits(number)
}

// numberOf reads the number from an id that the server may have made.
func numberOf(checkpointID string) (number int64, ok bool) {
	if !id.Valid(checkpointID) {
		return 0, false
	}
	number, err := strconv.ParseInt(checkpointID[len(checkpointID)-numberDigits:], 16, 64)
	return number, err == nil
}

// Newest stands for the number of a thread's newest checkpoint.
const Newest = math.MaxInt32

// State returns the thread's newest stored state.
func (s *Store) State(ctx context.Context, ref Ref) (State, error) {
	return s.StateAt(ctx, ref, Newest)
}

// StateAt returns the state at a checkpoint. If there is no checkpoint with this number, it
// returns the state at the newest checkpoint before it.
func (s *Store) StateAt(ctx context.Context, ref Ref, number int64) (State, error) {
	if number < 0 {
		return Empty(), nil
	}
	sortKey := func(base int64) string { return keyOf(ref, base).SK }
	c := chained{table: s.table, query: keys.Checkpoints(ref.Workspace, ref.Deployment, ref.Thread, number), sortKey: sortKey}
	newest, err := c.readFirst(ctx, s.states.lacks(ref, number)+1)
	if err != nil {
		return Empty(), fmt.Errorf("query checkpoints: %w", err)
	}
	st, items, cached := s.states.find(ref, newest)
	if !cached {
		if items, err = c.readAll(ctx); err != nil {
			return st, fmt.Errorf("query checkpoints: %w", err)
		}
	}
	if st, err = st.replay(items); err != nil {
		return st, err
	}
	s.states.remember(ref, st, number == Newest)
	return st, nil
}

// Find returns the number of a checkpoint, given by its id. It returns a fault.NotFound for an
// unknown id.
func (s *Store) Find(ctx context.Context, ref Ref, checkpointID string) (int64, error) {
	if checkpointID == "" || len(checkpointID) > maxName {
		return 0, checkpointNotFound(checkpointID)
	}
	if checkpointID == ref.Root() {
		return -1, nil
	}
	wanted := []table.Key{keys.CheckpointName(ref.Workspace, ref.Deployment, ref.Thread, checkpointID)}
	guess, ours := numberOf(checkpointID)
	if ours {
		wanted = append(wanted, keys.Checkpoint(ref.Workspace, ref.Deployment, ref.Thread, guess))
	}
	items, err := s.table.GetBatch(ctx, wanted...)
	if err != nil {
		return 0, fmt.Errorf("get checkpoint: %w", err)
	}
	if items[0] != nil {
		return items[0].Int(attrNumber), nil
	}
	if ours && items[1] != nil {
		b, err := decodeCheckpoint(items[1])
		if err != nil || b.ID == checkpointID {
			return guess, err
		}
	}
	return 0, checkpointNotFound(checkpointID)
}

func checkpointNotFound(checkpointID string) error {
	if len(checkpointID) > maxName {
		checkpointID = checkpointID[:maxName] + " ..."
	}
	return fault.New(fault.NotFound, "Checkpoint with ID %s not found.", checkpointID)
}

// firstLook is how many checkpoints are read before the number of the snapshot is known.
const firstLook = 8

// chained reads items, newest first, from the first item of a query back to the item on which
// it builds.
type chained struct {
	table table.Table
	query table.Query
	// sortKey returns the sort key of the item with a number.
	sortKey func(number int64) string
	page    table.Page
}

// readFirst reads the first few items, at most the given number.
func (c *chained) readFirst(ctx context.Context, most int) ([]*table.Item, error) {
	c.query.Limit = min(most, firstLook)
	var err error
	c.page, err = c.table.Query(ctx, c.query)
	return c.page.Items, err
}

// readAll returns all items, including the items of the first look.
func (c *chained) readAll(ctx context.Context) ([]*table.Item, error) {
	page, query := c.page, c.query
	if len(page.Items) == 0 {
		return nil, nil
	}
	base := c.sortKey(page.Items[0].Int(attrBase))
	for i, item := range page.Items {
		if item.Key.SK <= base {
			return page.Items[:i+1], nil
		}
	}
	if page.Cursor == "" {
		return page.Items, nil // the first item is missing: the caller will notice
	}
	// The remaining items lie before the last item that was read.
	query.From, query.To, query.Limit = base, page.Items[len(page.Items)-1].Key.SK, 0
	rest, err := table.AllItems(ctx, c.table, query)
	if err != nil || len(rest) == 0 {
		return nil, err
	}
	return append(page.Items, rest[1:]...), nil
}

// replay returns the state after stored checkpoints that follow this state; they are given newest
// first. If the state has no checkpoint yet, the first of them must be a snapshot.
func (s State) replay(items []*table.Item) (State, error) {
	for _, item := range slices.Backward(items) {
		b, err := decodeCheckpoint(item)
		if err != nil {
			return s, err
		}
		if s.At.Number < 0 && b.Values == nil {
			return s, fmt.Errorf("checkpoint %v is no snapshot", item.Key)
		}
		if s, err = s.next(item, b); err != nil {
			return s, err
		}
	}
	return s, nil
}

// next returns the state at the next stored checkpoint. A stored change belongs to the state at the
// checkpoint right before it. If that checkpoint is missing, for example because the thread is
// being erased, there is no state.
func (s State) next(item *table.Item, b checkpointBody) (State, error) {
	var err error
	switch {
	case b.Values == nil && b.Number != s.At.Number+1:
		return s, fmt.Errorf("checkpoint %v does not follow checkpoint %d", item.Key, s.At.Number)
	case b.Values != nil:
		if s.Values, err = state.Read(b.Values); err != nil {
			return s, fmt.Errorf("snapshot %v: %w", item.Key, err)
		}
		s.base, s.size, s.grown = item.Int(attrBase), int64(len(item.Body)), 0
	case b.Patch != nil:
		if s.Values, err = s.Values.Apply(*b.Patch); err != nil {
			return s, fmt.Errorf("checkpoint %v: %w", item.Key, err)
		}
		s.grown += int64(len(item.Body))
	default:
		return s, fmt.Errorf("checkpoint %v is neither a change nor a snapshot", item.Key)
	}
	s.At, s.stored, s.sum = b.Checkpoint, b.contents, maphash.Bytes(sums, item.Body)
	return s, nil
}

func decodeCheckpoint(item *table.Item) (b checkpointBody, err error) {
	r := record.Read(item, checkpointKind)
	b.Created = r.Created()
	if err := r.Err(); err != nil {
		return b, err
	}
	if b.Number, err = keys.CheckpointNumber(item.Key); err != nil {
		return b, err
	}
	large, rest, err := state.Cut(item.Body, "values")
	if err == nil {
		err = json.Unmarshal(rest, &b)
	}
	if err != nil {
		return b, fmt.Errorf("decode item %v: %w", item.Key, err)
	}
	b.Values = large[0]
	return b, nil
}

// Pending returns, in order, the updates that are in the state at a checkpoint but not in the
// agent's own checkpoint on which it builds. The input of the run is left out, because the
// agent gets the input itself.
func (s *Store) Pending(ctx context.Context, ref Ref, at Checkpoint, run string) ([]graph.StateUpdate, error) {
	pending := []graph.StateUpdate{}
	if at.Own() || at.Number < at.First || (at.Agent == nil && at.Folded) {
		return pending, nil
	}
	query := keys.Checkpoints(ref.Workspace, ref.Deployment, ref.Thread, at.Number)
	query.From, query.Reverse = keys.Checkpoint(ref.Workspace, ref.Deployment, ref.Thread, at.First).SK, false
	items, err := table.AllItems(ctx, s.table, query)
	if err != nil {
		return nil, fmt.Errorf("query pending updates: %w", err)
	}
	for _, item := range items {
		b, err := decodeCheckpoint(item)
		if err != nil {
			return nil, err
		}
		if b.Source == SourceInput && b.Run == run && len(b.Pending) > 0 {
			b.Pending = b.Pending[:len(b.Pending)-1] // earlier updates came with a fork
		}
		for _, update := range b.Pending {
			if update.Values == nil {
				update.Values = b.Values
			}
			pending = append(pending, update)
		}
	}
	return pending, nil
}

// BusyFault returns the fault of a request that is not allowed while a run of the thread is in
// flight.
func BusyFault(ref Ref) error {
	return fault.New(fault.Conflict, "Thread %s is already running a task. Wait for it to finish or choose a different multitask strategy.", ref.Thread)
}
