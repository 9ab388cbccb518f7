package thread

import (
	"cmp"
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

// frame is the data from which an agent that keeps checkpoints goes on: its own data of its
// newest checkpoint, the data that it stored since, and the earlier checkpoints of lasting
// subgraphs. The server does not know the format of this data. It stores each checkpoint as a
// delta of the previous one, and now and then a whole checkpoint. A frame never changes.
type frame struct {
	// read says that the frame was read from the table, or that there is nothing to read.
	read bool
	// at is the number of the agent's checkpoint, -1 before its first checkpoint.
	at   int64
	root chain
	// kept are the lasting subgraphs at the time of the checkpoint, since the newest
	// checkpoint of each subgraph after it.
	kept  map[string]chain
	since tiers[string, subgraph]
	// named are the ids of earlier checkpoints of subgraphs to keep, by namespace, and earlier are
	// those that were found.
	named   map[string]string
	earlier map[string]graph.Checkpoint
	// writes are the newest results of each task since the checkpoint.
	writes tiers[task, results]
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

// subgraph is a checkpoint of a subgraph, with its values as clients see them. They are not known
// if the checkpoint was read.
type subgraph struct {
	graph.Checkpoint

	values state.Values
	known  bool
}

// task is a task of a checkpoint.
type task struct{ checkpoint, ns, id string }

// results are the results of a task. item is the number of their item since the checkpoint.
type results struct {
	graph.Writes

	item int64
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

// noFrame is the frame of an agent that has no checkpoint on the thread yet.
var noFrame = frame{read: true, at: -1, root: noChain, kept: map[string]chain{}}

var noChain = chain{number: -1}

func (f frame) checkpoints() *graph.Checkpoints {
	if f.at < 0 {
		return nil
	}
	all := &graph.Checkpoints{ID: f.root.ID, Checkpoints: []graph.Checkpoint{f.root.Checkpoint}, Writes: f.inOrder()}
	newest := map[string]graph.Checkpoint{}
	for ns, c := range f.kept {
		newest[ns] = c.Checkpoint
	}
	for ns, sub := range f.since.all() {
		newest[ns] = sub.Checkpoint
	}
	for _, ns := range slices.Sorted(maps.Keys(newest)) {
		if earlier, ok := f.earlier[ns]; ok && earlier.ID != newest[ns].ID {
			all.Checkpoints = append(all.Checkpoints, earlier)
		}
		all.Checkpoints = append(all.Checkpoints, newest[ns])
	}
	return all
}

// inOrder returns the results of tasks in the order in which they came.
func (f frame) inOrder() []graph.Writes {
	inOrder := slices.SortedFunc(maps.Values(f.writes.all()), func(a, b results) int { return cmp.Compare(a.item, b.item) })
	writes := make([]graph.Writes, len(inOrder))
	for i, result := range inOrder {
		writes[i] = result.Writes
	}
	return writes
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

// advance returns the frame at the agent's checkpoint with a number, the writes that store it, and
// where its lasting subgraphs are stored. On a new branch everything is stored whole.
func (f frame) advance(ref Ref, number int64, now time.Time, branch bool, c graph.Checkpoint) (frame, []table.Write, []LastingSubgraph, error) {
	if !f.read {
		return f, nil, nil, errNoFrame
	}
	next := frame{read: true, at: number, root: f.root, kept: maps.Clone(f.kept)}
	lasting := map[string]graph.Checkpoint{}
	if branch { // the chains go on where the other branch may have put checkpoints
		next.root = noChain
		for ns, before := range f.kept {
			lasting[ns], next.kept[ns] = before.Checkpoint, noChain
		}
	}
	for ns, sub := range f.since.all() {
		if sub.Persistent {
			lasting[ns] = sub.Checkpoint
		}
	}
	var put table.Put
	next.root, put = next.root.put(keys.Frame(ref.Workspace, ref.Deployment, ref.Thread, number), number, now, c)
	writes := []table.Write{put}
	for _, ns := range slices.Sorted(maps.Keys(lasting)) {
		before, known := next.kept[ns]
		if !known {
			before = noChain
		}
		next.kept[ns], put = before.put(keys.KeptFrame(ref.Workspace, ref.Deployment, ref.Thread, ns, number), number, now, lasting[ns])
		writes = append(writes, put)
	}
	if len(next.kept) > maxKept {
		return f, nil, nil, fmt.Errorf("checkpoint %.40s has %d lasting subgraphs: the limit is %d", c.ID, len(next.kept), maxKept)
	}
	var lastingNow []LastingSubgraph
	for _, ns := range slices.Sorted(maps.Keys(next.kept)) {
		lastingNow = append(lastingNow, LastingSubgraph{NS: ns, Number: next.kept[ns].number})
	}
	return next, writes, lastingNow, nil
}

// put returns the chain with the next checkpoint, and the write that stores it.
func (c chain) put(key table.Key, number int64, now time.Time, next graph.Checkpoint) (chain, table.Put) {
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
	attrs := checkpointAttrs(c.Checkpoint)
	attrs[attrBase], attrs[attrFrom] = c.base, from
	return c, record.New(key, frameKind, now, attrs, body)
}

// bare returns a checkpoint as the agent gets it back.
func bare(c graph.Checkpoint) graph.Checkpoint {
	return graph.Checkpoint{ID: c.ID, ParentID: c.ParentID, NS: c.NS, Persistent: c.Persistent, Data: c.Data}
}

// checkpointAttrs returns the attributes of an item that holds a checkpoint.
func checkpointAttrs(c graph.Checkpoint) table.Attrs {
	attrs := table.Attrs{attrID: c.ID, attrNS: c.NS, attrLasting: c.Persistent}
	if c.ParentID != "" {
		attrs[attrParent] = c.ParentID
	}
	return attrs
}

func checkpointFromAttrs(item *table.Item) graph.Checkpoint {
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

// subgraph returns the frame with a subgraph's checkpoint, and the write that stores it. At is the
// thread's state.
func (f frame) subgraph(ref Ref, now time.Time, at State, c graph.Checkpoint) (frame, []table.Write, error) {
	if !f.read {
		return f, nil, errNoFrame
	}
	if f.at < 0 {
		return f, nil, nil
	}
	next := subgraph{Checkpoint: bare(c), known: true}
	show := shown{Next: c.Next, Tasks: state.Present(c.Tasks), Metadata: state.Present(c.Metadata)}
	from, data := fromRoot, f.root.Data
	if kept, ok := f.kept[c.NS]; ok {
		from, data = fromKept, kept.Data
	}
	if before, ok := f.since.get(c.NS); ok {
		from, data = fromSelf, before.Data
		next.values, show.Self = before.values, before.known
	}
	if show.Root = !show.Self && at.At.Own() && at.At.Number == f.at; show.Root {
		next.values = at.Values
	}
	var err error
	if next.values, show.Patch, err = next.values.Replace(state.OrNull(c.Values)); err != nil {
		return f, nil, err
	}
	attrs := checkpointAttrs(c)
	attrs[attrFrom] = from
	delta := state.Delta(data, c.Data)
	f.since = f.since.with(c.NS, next)
	f, put := f.put(ref, now, attrs, sinceBody{Shown: &show, Data: delta})
	return f, []table.Write{put}, nil
}

// results returns the frame with the results of a task, and the write that stores them.
func (f frame) results(ref Ref, now time.Time, w graph.Writes) (frame, []table.Write, error) {
	if max(len(w.CheckpointID), len(w.NS), len(w.TaskID)) > maxName {
		return f, nil, fmt.Errorf("a name of the writes of task %.40s is longer than %d bytes", w.TaskID, maxName)
	}
	if !f.read {
		return f, nil, errNoFrame
	}
	if f.at < 0 {
		return f, nil, nil
	}
	f, put := f.put(ref, now, table.Attrs{attrTask: w.TaskID, attrID: w.CheckpointID, attrNS: w.NS}, sinceBody{Data: w.Data})
	f = f.withResults(w)
	return f, []table.Write{put}, nil
}

// withResults returns the frame with a task's results, which are its newest item, in place of the
// earlier results of this task.
func (f frame) withResults(w graph.Writes) frame {
	f.writes = f.writes.with(task{w.CheckpointID, w.NS, w.TaskID}, results{w, f.items})
	return f
}

// put returns the frame with one more item since the checkpoint, and the write that stores it.
func (f frame) put(ref Ref, now time.Time, attrs table.Attrs, body sinceBody) (frame, table.Put) {
	f.items++
	key := keys.FrameSince(ref.Workspace, ref.Deployment, ref.Thread, f.at, f.items)
	return f, record.New(key, sinceKind, now, attrs, record.Encode(body))
}

// ReadFrame returns the log with the data from which the agent goes on, so that the agent can
// write to the log.
func (s *Store) ReadFrame(ctx context.Context, l Log) (Log, error) {
	var err error
	l.frame, err = s.frame(ctx, l.ref, l.At.Agent, l.named)
	return l, err
}

// frame reads the data of an agent's checkpoint, which is nil before the agent's first checkpoint,
// with the earlier checkpoints of subgraphs that are named by namespace.
func (s *Store) frame(ctx context.Context, ref Ref, agent *AgentCheckpoint, named map[string]string) (frame, error) {
	f := noFrame
	if agent == nil {
		return f, nil
	}
	f.at, f.kept = agent.Number, map[string]chain{}
	f.named, f.earlier = named, map[string]graph.Checkpoint{}
	var err error
	root := func(number int64) table.Key { return keys.Frame(ref.Workspace, ref.Deployment, ref.Thread, number) }
	if f.root, err = s.readChain(ctx, keys.Frames(ref.Workspace, ref.Deployment, ref.Thread, agent.Number), root, agent.Number); err != nil {
		return f, err
	}
	for _, kept := range agent.Lasting {
		key := func(number int64) table.Key {
			return keys.KeptFrame(ref.Workspace, ref.Deployment, ref.Thread, kept.NS, number)
		}
		query := keys.KeptFrames(ref.Workspace, ref.Deployment, ref.Thread, kept.NS, kept.Number)
		if f.kept[kept.NS], err = s.readChain(ctx, query, key, kept.Number); err != nil {
			return f, err
		}
	}
	items, err := table.AllItems(ctx, s.table, keys.FramesSince(ref.Workspace, ref.Deployment, ref.Thread, agent.Number))
	if err != nil {
		return f, fmt.Errorf("query the agent's own checkpoints: %w", err)
	}
	for _, item := range items {
		if f, err = f.next(item); err != nil {
			return f, err
		}
	}
	return f, nil
}

// Written returns the tasks whose results were stored after the agent's checkpoint number.
func (s *Store) Written(ctx context.Context, ref Ref, number int64) (map[string]bool, error) {
	items, err := table.AllItems(ctx, s.table, keys.FramesSince(ref.Workspace, ref.Deployment, ref.Thread, number))
	if err != nil {
		return nil, fmt.Errorf("query the agent's own checkpoints: %w", err)
	}
	tasks := map[string]bool{}
	for _, item := range items {
		if task := item.Text(attrTask); task != "" {
			tasks[task] = true
		}
	}
	return tasks, nil
}

func (s *Store) readChain(ctx context.Context, query table.Query, key func(int64) table.Key, number int64) (chain, error) {
	chained := chained{table: s.table, query: query, sortKey: func(base int64) string { return key(base).SK }}
	_, err := chained.readFirst(ctx, firstLook)
	var items []*table.Item
	if err == nil {
		items, err = chained.readAll(ctx)
	}
	if err != nil {
		return noChain, fmt.Errorf("query the agent's checkpoint: %w", err)
	}
	if len(items) == 0 || items[0].Key != key(number) || items[len(items)-1].Text(attrFrom) != "" {
		return noChain, fmt.Errorf("the agent's checkpoint %v is not whole", key(number))
	}
	first := items[len(items)-1]
	c := chain{Checkpoint: checkpointFromAttrs(items[0]), number: number, base: items[0].Int(attrBase), size: int64(len(first.Body))}
	text := state.NewText(first.Body)
	for _, item := range slices.Backward(items[:len(items)-1]) {
		if err := record.Check(item, frameKind); err != nil {
			return c, err
		}
		if err := text.Apply(item.Body); err != nil {
			return c, fmt.Errorf("item %v: %w", item.Key, err)
		}
		c.grown += int64(len(item.Body))
	}
	c.Data = text.Bytes()
	return c, nil
}

// next returns the frame with an item that was stored since the checkpoint.
func (f frame) next(item *table.Item) (frame, error) {
	b, err := decodeSince(item)
	if err != nil {
		return f, err
	}
	f.items++
	if task := item.Text(attrTask); b.Shown == nil {
		return f.withResults(graph.Writes{CheckpointID: item.Text(attrID), NS: item.Text(attrNS), TaskID: task, Data: b.Data}), nil
	}
	c := checkpointFromAttrs(item)
	since, _ := f.since.get(c.NS)
	if since.ID != "" && since.ID == f.named[c.NS] {
		f.earlier[c.NS] = since.Checkpoint
	}
	before := f.root.Data
	switch item.Text(attrFrom) {
	case fromKept:
		before = f.kept[c.NS].Data
	case fromSelf:
		before = since.Data
	}
	text := state.NewText(before)
	if err := text.Apply(b.Data); err != nil {
		return f, fmt.Errorf("item %v: %w", item.Key, err)
	}
	c.Data = text.Bytes()
	f.since = f.since.with(c.NS, subgraph{Checkpoint: c})
	return f, nil
}
