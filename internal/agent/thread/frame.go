package thread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Frame is the data from which an agent that keeps checkpoints goes on: its own data of its
// newest checkpoint, the data that it stored since, and the earlier checkpoints of lasting
// subgraphs. The server does not know the format of this data. It stores each checkpoint as a
// delta of the previous one, and now and then a whole checkpoint. A Frame belongs to one
// goroutine.
type Frame struct {
	ref Ref
	// at is the number of the agent's checkpoint, -1 before its first checkpoint.
	at   int64
	root *chain
	// kept are the lasting subgraphs at the time of the checkpoint, since the newest
	// checkpoint of each subgraph after it.
	kept  map[string]*chain
	since map[string]*subgraph
	// writes are the results of tasks since the checkpoint, in the order in which they came.
	writes []graph.Writes
	// items is the number of items since the checkpoint.
	items int64
}

// chain is a series of checkpoints. Each of them is stored as a delta of the previous
// checkpoint.
type chain struct {
	graph.Checkpoint

	// number is the number of the newest checkpoint, -1 if there is no checkpoint. base is the
	// number of the last whole checkpoint, size its size. grown is how many bytes of deltas
	// lie behind it.
	number, base, size, grown int64
}

// subgraph is a checkpoint of a subgraph, with its values as clients see them; values is nil
// if the checkpoint was read.
type subgraph struct {
	graph.Checkpoint

	values *state.Values
}

// Bounds of the data that an agent may send for a checkpoint.
const (
	// maxName is how long its name, its namespace and a task's id may be, in bytes.
	maxName = 512
	// maxKept is how many lasting subgraphs a checkpoint may have, because each is a write of
	// the same transaction.
	maxKept = 24
)

const (
	nameKind  = "checkpoint_name"
	frameKind = "frame"
	sinceKind = "frame_since"
)

const (
	// attrNumber is the number of a named checkpoint.
	attrNumber = "number"
	attrNS     = "ns"
	attrID     = "id"
	attrParent = "parent"
	attrTask   = "task"
	// attrFrom says to which text a delta applies: "" for a whole text, otherwise one of the
	// values below.
	attrFrom    = "from"
	attrLasting = "lasting"
)

const (
	fromRoot = "root" // the graph's own checkpoint
	fromKept = "kept" // the subgraph's checkpoint at the time of root
	fromSelf = "self" // the previous checkpoint of the same namespace
)

// newFrame returns the frame of an agent that has no checkpoint on the thread yet.
func newFrame(ref Ref) *Frame {
	return &Frame{ref: ref, at: -1, root: newChain(), kept: map[string]*chain{}, since: map[string]*subgraph{}}
}

func newChain() *chain { return &chain{number: -1} }

// Checkpoints returns the checkpoints for the agent, nil before its first checkpoint.
func (f *Frame) Checkpoints() *graph.Checkpoints {
	if f.at < 0 {
		return nil
	}
	all := &graph.Checkpoints{ID: f.root.ID, Checkpoints: []graph.Checkpoint{f.root.Checkpoint}, Writes: slices.Clone(f.writes)}
	newest := map[string]graph.Checkpoint{}
	for ns, c := range f.kept {
		newest[ns] = c.Checkpoint
	}
	for ns, sub := range f.since {
		newest[ns] = sub.Checkpoint
	}
	for _, ns := range slices.Sorted(maps.Keys(newest)) {
		all.Checkpoints = append(all.Checkpoints, newest[ns])
	}
	if all.Writes == nil {
		all.Writes = []graph.Writes{}
	}
	return all
}

// End returns the number of the agent's checkpoint, -1 if it has none, and the number of items
// that were stored since.
func (f *Frame) End() (checkpoint, items int64) { return f.at, f.items }

// Tasks returns the tasks whose results are stored.
func (f *Frame) Tasks() map[string]bool {
	tasks := map[string]bool{}
	for _, w := range f.writes {
		tasks[w.TaskID] = true
	}
	return tasks
}

// checkNames returns an error if one of the checkpoint's names cannot be stored.
func checkNames(c graph.Checkpoint) error {
	if c.ID == "" {
		return errors.New("checkpoint has no id")
	}
	if max(len(c.ID), len(c.ParentID), len(c.NS)) > maxName {
		return fmt.Errorf("a name of checkpoint %.40s is longer than %d bytes", c.ID, maxName)
	}
	return nil
}

// Follow records a checkpoint of the root graph as the thread's next checkpoint and returns
// the writes that store it, under the same rule as State.Advance. Patch is the change that the
// checkpoint's values made to s.Values.
func (s *State) Follow(f *Frame, now time.Time, change Change, c graph.Checkpoint) ([]table.Write, error) {
	if err := checkNames(c); err != nil {
		return nil, err
	}
	branch, number := s.branches(), s.last+1
	next := Checkpoint{
		ID: c.ID, ParentID: c.ParentID, Number: number, Run: change.Run, Graph: change.Graph, Source: change.Source, Created: now,
		Next: c.Next, Tasks: present(c.Tasks), Metadata: present(c.Metadata), First: number,
	}
	if next.Next == nil {
		next.Next = []string{}
	}
	if !s.At.Own() && !s.Forks() && s.At.Number >= 0 {
		next.First = s.At.First // the agent has the updates that the server kept for it
	}
	var said struct{ Step *int64 }
	if json.Unmarshal(state.OrNull(c.Metadata), &said) == nil && said.Step != nil {
		next.Step = *said.Step
	} else {
		next.Step = s.At.Step + 1
	}
	writes, keep, err := f.advance(number, now, branch, c)
	if err != nil {
		return nil, err
	}
	next.Agent = &Mark{Number: number, ID: c.ID, Keep: keep}
	named := table.Put{Item: table.Item{
		Key:   keys.CheckpointName(f.ref.Workspace, f.ref.Deployment, f.ref.Thread, c.ID),
		Attrs: record.Attrs(nameKind, now, table.Attrs{attrNumber: number}),
	}}
	return append(writes, named, s.store(f.ref, next, next.body(change.Patch))), nil
}

func present(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// advance makes the checkpoint with the number the newest checkpoint of the frame. On a new
// branch everything is stored whole.
func (f *Frame) advance(number int64, now time.Time, branch bool, c graph.Checkpoint) ([]table.Write, []Kept, error) {
	if branch {
		f.root = newChain()
	}
	writes := []table.Write{f.root.put(keys.Frame(f.ref.Workspace, f.ref.Deployment, f.ref.Thread, number), number, now, c)}
	lasting := map[string]graph.Checkpoint{}
	for ns, before := range f.kept {
		if branch { // its chain goes on where the other branch may have put a checkpoint
			lasting[ns], f.kept[ns] = before.Checkpoint, newChain()
		}
	}
	for ns, sub := range f.since {
		if sub.Persistent {
			lasting[ns] = sub.Checkpoint
		}
	}
	for _, ns := range slices.Sorted(maps.Keys(lasting)) {
		if f.kept[ns] == nil {
			f.kept[ns] = newChain()
		}
		writes = append(writes, f.kept[ns].put(keys.KeptFrame(f.ref.Workspace, f.ref.Deployment, f.ref.Thread, ns, number), number, now, lasting[ns]))
	}
	if len(f.kept) > maxKept {
		return nil, nil, fmt.Errorf("checkpoint %.40s has %d lasting subgraphs: the limit is %d", c.ID, len(f.kept), maxKept)
	}
	var keep []Kept
	for _, ns := range slices.Sorted(maps.Keys(f.kept)) {
		keep = append(keep, Kept{NS: ns, Number: f.kept[ns].number})
	}
	f.at, f.since, f.writes, f.items = number, map[string]*subgraph{}, nil, 0
	return writes, keep, nil
}

// put stores the next checkpoint of a chain.
func (c *chain) put(key table.Key, number int64, now time.Time, next graph.Checkpoint) table.Put {
	var body []byte
	from := fromSelf
	if c.number >= 0 {
		body = state.Delta(c.Data, next.Data)
		c.grown += int64(len(body))
	}
	if c.number < 0 || c.grown > max(c.size, snapshotFloor) {
		body, from = next.Data, ""
		c.base, c.size, c.grown = number, int64(len(body)), 0
	}
	c.number, c.Checkpoint = number, bare(next)
	attrs := named(c.Checkpoint)
	attrs[attrBase], attrs[attrFrom] = c.base, from
	return table.Put{Item: table.Item{Key: key, Attrs: record.Attrs(frameKind, now, attrs), Body: body}, If: table.Absent()}
}

// bare returns a checkpoint as the agent gets it back.
func bare(c graph.Checkpoint) graph.Checkpoint {
	return graph.Checkpoint{ID: c.ID, ParentID: c.ParentID, NS: c.NS, Persistent: c.Persistent, Data: c.Data}
}

// named returns the attributes of an item that holds a checkpoint.
func named(c graph.Checkpoint) table.Attrs {
	attrs := table.Attrs{attrID: c.ID, attrNS: c.NS, attrLasting: c.Persistent}
	if c.ParentID != "" {
		attrs[attrParent] = c.ParentID
	}
	return attrs
}

func unnamed(item *table.Item) graph.Checkpoint {
	return graph.Checkpoint{ID: item.Text(attrID), ParentID: item.Text(attrParent), NS: item.Text(attrNS), Persistent: item.Bool(attrLasting)}
}

// shown is the part of an item since the checkpoint that clients see of a subgraph.
type shown struct {
	// Patch is relative to the previous values of the namespace (Self), to the values of the
	// graph (Root), or to no values.
	Patch    state.Patch     `json:"patch"`
	Self     bool            `json:"self,omitempty"`
	Root     bool            `json:"root,omitempty"`
	Next     []string        `json:"next,omitempty"`
	Tasks    json.RawMessage `json:"tasks,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// sinceBody is the body of an item since the checkpoint: the part of a subgraph that clients
// see, and the agent's own data of the subgraph or of a task's results.
type sinceBody struct {
	Shown *shown `json:"shown,omitempty"`
	Data  []byte `json:"data"`
}

func decodeSince(item *table.Item) (sinceBody, error) {
	var b sinceBody
	r := record.Read(item, sinceKind)
	r.Decode(&b)
	return b, r.Err()
}

// Subgraph records a subgraph's checkpoint and returns the write that stores it, nil while the
// root graph itself has no checkpoint. At is the thread's state.
func (f *Frame) Subgraph(now time.Time, at *State, c graph.Checkpoint) (table.Write, error) {
	if err := checkNames(c); err != nil {
		return nil, err
	}
	if f.at < 0 {
		return nil, nil
	}
	next := &subgraph{Checkpoint: bare(c)}
	show := shown{Next: c.Next, Tasks: present(c.Tasks), Metadata: present(c.Metadata)}
	from, data := fromRoot, f.root.Data
	if kept := f.kept[c.NS]; kept != nil {
		from, data = fromKept, kept.Data
	}
	if before := f.since[c.NS]; before != nil {
		from, data, next.values = fromSelf, before.Data, before.values
	}
	if show.Self = next.values != nil; !show.Self {
		next.values = new(state.Values)
		if show.Root = at.At.Own() && at.At.Number == f.at; show.Root {
			next.values = at.Values.Clone()
		}
	}
	var err error
	if show.Patch, err = next.values.Replace(state.OrNull(c.Values)); err != nil {
		return nil, err
	}
	attrs := named(c)
	attrs[attrFrom] = from
	f.since[c.NS] = next
	return f.put(now, attrs, sinceBody{Shown: &show, Data: state.Delta(data, c.Data)}), nil
}

// Writes records the results of a task and returns the write that stores them, nil while the
// root graph has no checkpoint.
func (f *Frame) Writes(now time.Time, w graph.Writes) (table.Write, error) {
	if max(len(w.CheckpointID), len(w.NS), len(w.TaskID)) > maxName {
		return nil, fmt.Errorf("a name of the writes of task %.40s is longer than %d bytes", w.TaskID, maxName)
	}
	if f.at < 0 {
		return nil, nil
	}
	f.take(w)
	return f.put(now, table.Attrs{attrTask: w.TaskID, attrID: w.CheckpointID, attrNS: w.NS}, sinceBody{Data: w.Data}), nil
}

// take adds a task's results in place of the earlier results of this task.
func (f *Frame) take(w graph.Writes) {
	same := func(other graph.Writes) bool {
		return other.CheckpointID == w.CheckpointID && other.NS == w.NS && other.TaskID == w.TaskID
	}
	f.writes = append(slices.DeleteFunc(f.writes, same), w)
}

func (f *Frame) put(now time.Time, attrs table.Attrs, body sinceBody) table.Write {
	f.items++
	return table.Put{Item: table.Item{
		Key:   keys.FrameSince(f.ref.Workspace, f.ref.Deployment, f.ref.Thread, f.at, f.items),
		Attrs: record.Attrs(sinceKind, now, attrs),
		Body:  record.Encode(body),
	}, If: table.Absent()}
}

// Frame reads the data from which the agent goes on at its checkpoint; a nil mark means that
// there is no checkpoint.
func (s *Store) Frame(ctx context.Context, ref Ref, mark *Mark) (*Frame, error) {
	f := newFrame(ref)
	if mark == nil {
		return f, nil
	}
	f.at = mark.Number
	var err error
	root := func(number int64) table.Key { return keys.Frame(ref.Workspace, ref.Deployment, ref.Thread, number) }
	if f.root, err = s.readChain(ctx, keys.Frames(ref.Workspace, ref.Deployment, ref.Thread, mark.Number), root, mark.Number); err != nil {
		return nil, err
	}
	for _, kept := range mark.Keep {
		key := func(number int64) table.Key {
			return keys.KeptFrame(ref.Workspace, ref.Deployment, ref.Thread, kept.NS, number)
		}
		query := keys.KeptFrames(ref.Workspace, ref.Deployment, ref.Thread, kept.NS, kept.Number)
		if f.kept[kept.NS], err = s.readChain(ctx, query, key, kept.Number); err != nil {
			return nil, err
		}
	}
	items, err := table.AllItems(ctx, s.table, keys.FramesSince(ref.Workspace, ref.Deployment, ref.Thread, mark.Number))
	if err != nil {
		return nil, fmt.Errorf("query what the agent kept: %w", err)
	}
	for _, item := range items {
		if err := f.read(item); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Written returns the tasks whose results were stored after the agent's checkpoint number.
func (s *Store) Written(ctx context.Context, ref Ref, number int64) (map[string]bool, error) {
	items, err := table.AllItems(ctx, s.table, keys.FramesSince(ref.Workspace, ref.Deployment, ref.Thread, number))
	if err != nil {
		return nil, fmt.Errorf("query what the agent kept: %w", err)
	}
	tasks := map[string]bool{}
	for _, item := range items {
		if task := item.Text(attrTask); task != "" {
			tasks[task] = true
		}
	}
	return tasks, nil
}

func (s *Store) readChain(ctx context.Context, query table.Query, key func(int64) table.Key, number int64) (*chain, error) {
	chained := chained{Store: s, query: query, sortKey: func(base int64) string { return key(base).SK }}
	_, err := chained.look(ctx)
	var items []*table.Item
	if err == nil {
		items, err = chained.rest(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("query the agent's checkpoint: %w", err)
	}
	if len(items) == 0 || items[0].Key != key(number) || items[len(items)-1].Text(attrFrom) != "" {
		return nil, fmt.Errorf("the agent's checkpoint %v is not whole", key(number))
	}
	first := items[len(items)-1]
	c := &chain{Checkpoint: unnamed(items[0]), number: number, base: items[0].Int(attrBase), size: int64(len(first.Body))}
	text := state.NewText(first.Body)
	for _, item := range slices.Backward(items[:len(items)-1]) {
		if err := record.Check(item, frameKind); err != nil {
			return nil, err
		}
		if err := text.Apply(item.Body); err != nil {
			return nil, fmt.Errorf("item %v: %w", item.Key, err)
		}
		c.grown += int64(len(item.Body))
	}
	c.Data = text.Bytes()
	return c, nil
}

// read takes an item that was stored since the checkpoint.
func (f *Frame) read(item *table.Item) error {
	b, err := decodeSince(item)
	if err != nil {
		return err
	}
	f.items++
	if task := item.Text(attrTask); b.Shown == nil {
		f.take(graph.Writes{CheckpointID: item.Text(attrID), NS: item.Text(attrNS), TaskID: task, Data: b.Data})
		return nil
	}
	c := unnamed(item)
	before := f.root.Data
	switch item.Text(attrFrom) {
	case fromKept:
		before = f.kept[c.NS].Data
	case fromSelf:
		before = f.since[c.NS].Data
	}
	text := state.NewText(before)
	if err := text.Apply(b.Data); err != nil {
		return fmt.Errorf("item %v: %w", item.Key, err)
	}
	c.Data = text.Bytes()
	f.since[c.NS] = &subgraph{Checkpoint: c}
	return nil
}
