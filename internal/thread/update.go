package thread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/graph"
	"github.com/slipway-run/slipway/internal/id"
	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/state"
	"github.com/slipway-run/slipway/internal/table"
)

// Edit is a change of a thread's state that belongs to no run. It is made on the state as it was read, and stored if no run has begun since. It belongs to one
// goroutine.
type Edit struct {
	store  *Store
	thread Thread
	// State is the state with what was changed so far.
	State *State
	frame *Frame
	// Within is the subgraph's checkpoint that the agent made last, if it made one.
	Within graph.Checkpoint
	// groups are the writes of each checkpoint, which must not come apart.
	groups [][]table.Write
}

// Edit begins a change of the state at a checkpoint, at the newest when number is negative. A thread whose run is in flight is a fault.Conflict. What earlier
// runs leave behind must be in the state already.
func (s *Store) Edit(ctx context.Context, t Thread, number int64) (*Edit, error) {
	if t.Lock.Busy {
		return nil, BusyFault(t.Ref)
	}
	e := &Edit{store: s, thread: t}
	if number < 0 {
		number = t.Lock.Checkpoint
	}
	var err error
	if e.State, err = s.StateAt(ctx, t.Ref, number); err != nil {
		return nil, err
	}
	if number != t.Lock.Checkpoint {
		pending, err := s.Pending(ctx, t.Ref, e.State.At, "")
		if err != nil {
			return nil, err
		}
		e.State.Fork(t.Lock.Checkpoint, pending)
	}
	return e, nil
}

// Before returns what an agent needs to make the change itself: its own checkpoint, and the updates that it does not have yet.
func (e *Edit) Before(ctx context.Context) (*graph.Checkpoints, []graph.StateUpdate, error) {
	var err error
	if e.frame, err = e.store.Frame(ctx, e.thread.Ref, e.State.At.Agent); err != nil {
		return nil, nil, err
	}
	pending, err := e.store.Pending(ctx, e.thread.Ref, e.State.At, "")
	return e.frame.Checkpoints(), pending, err
}

// Thread is the id of the thread that is changed.
func (e *Edit) Thread() string { return e.thread.Thread }

// Fold makes updates as nodes, through the server's own reducers, and one checkpoint of them. Updates of nothing make one, too.
func (e *Edit) Fold(graphID string, updates []graph.StateUpdate) error {
	now := e.store.now()
	newID := func() string { return id.New(now) }
	before := e.State.Values.Clone()
	var pending []graph.StateUpdate
	for _, update := range updates {
		for _, values := range oneOrMany(update) {
			values, err := state.Coerce(values, newID)
			if err == nil {
				_, err = e.State.Values.Reduce(values, newID)
			}
			if err != nil {
				return fault.New(fault.Invalid, "The values cannot be applied: %v.", err)
			}
			pending = append(pending, graph.StateUpdate{Values: values, AsNode: update.AsNode})
		}
	}
	patch, err := before.Replace(e.State.Values.JSON())
	if err != nil {
		return err
	}
	change := Change{Graph: graphID, Source: SourceUpdate, Patch: patch, Pending: pending}
	e.groups = append(e.groups, []table.Write{e.State.Advance(e.thread.Ref, now, change)})
	return nil
}

// oneOrMany returns the values of an update, of which a list has several; those of a command are its own update.
func oneOrMany(update graph.StateUpdate) []json.RawMessage {
	values := update.Values
	if len(values) == 0 || string(values) == "null" {
		var command struct{ Update json.RawMessage }
		if len(update.Command) > 0 && json.Unmarshal(update.Command, &command) == nil && len(command.Update) > 0 {
			values = command.Update
		}
	}
	var list []json.RawMessage
	if len(values) > 0 && values[0] == '[' && json.Unmarshal(values, &list) == nil {
		return list
	}
	return []json.RawMessage{orNull(values)}
}

// Follow takes a checkpoint that the agent has made of the change. Those of subgraphs are kept with it.
func (e *Edit) Follow(graphID string, c graph.Checkpoint) error {
	now := e.store.now()
	if c.NS != "" {
		e.Within = bare(c)
		write, err := e.frame.Subgraph(now, e.State, c)
		if write != nil {
			e.join(func(writes []table.Write) []table.Write { return append(writes, write) })
		}
		return err
	}
	if put, same := e.State.Amend(e.thread.Ref, c); same {
		e.join(func(writes []table.Write) []table.Write { return Replace(writes, put) })
		return nil
	}
	patch, err := e.State.Values.Replace(orNull(c.Values))
	if err != nil {
		return err
	}
	writes, err := e.State.Follow(e.frame, now, Change{Graph: graphID, Source: SourceUpdate, Patch: patch}, c)
	e.groups = append(e.groups, writes)
	return err
}

// join changes the writes of the newest checkpoint.
func (e *Edit) join(change func([]table.Write) []table.Write) {
	if len(e.groups) == 0 {
		e.groups = [][]table.Write{nil}
	}
	last := len(e.groups) - 1
	e.groups[last] = change(e.groups[last])
}

// Replace puts a write in the place of the one that waits for the same key, or behind all others.
func Replace(writes []table.Write, put table.Put) []table.Write {
	for i, write := range writes {
		if waiting, ok := write.(table.Put); ok && waiting.Item.Key == put.Item.Key {
			put.If = waiting.If
			writes[i] = put
			return writes
		}
	}
	return append(writes, put)
}

// editBatch is how many writes of an edit one transaction holds, beside that of the lock.
const editBatch = table.MaxWrites - 1

// Commit stores the change. A run that was created meanwhile makes it a fault.Conflict.
func (e *Edit) Commit(ctx context.Context) error {
	for len(e.groups) > 0 {
		some := e.groups[0]
		for e.groups = e.groups[1:]; len(e.groups) > 0 && len(some)+len(e.groups[0]) <= editBatch; e.groups = e.groups[1:] {
			some = slices.Concat(some, e.groups[0])
		}
		now := e.store.now()
		lock := e.thread.ChangeLock(now, table.Attrs{AttrCheckpoint: newestOf(some, e.thread.Lock.Checkpoint)})
		if len(e.groups) == 0 {
			e.settle(&lock)
		}
		err := e.store.table.Transact(ctx, append(slices.Clip(some), lock)...)
		if _, lost := errors.AsType[*table.ConditionFailed](err); lost {
			return BusyFault(e.thread.Ref)
		}
		if err != nil {
			return fmt.Errorf("change state: %w", err)
		}
		e.thread.Lock.Epoch++
	}
	return nil
}

// newestOf is the number of the last checkpoint among writes.
func newestOf(writes []table.Write, newest int64) int64 {
	for _, write := range writes {
		if put, ok := write.(table.Put); ok && put.Item.Text(record.Kind) == checkpointKind {
			if number, err := keys.CheckpointNumber(put.Item.Key); err == nil {
				newest = number
			}
		}
	}
	return newest
}

// settle makes the thread show what an agent said of its own checkpoint: whether it waits for anything.
func (e *Edit) settle(lock *table.Update) {
	if !e.State.At.Own() {
		return
	}
	status := StatusIdle
	if len(e.State.At.Next) > 0 {
		status = StatusInterrupted
	}
	lock.Set[AttrStatus] = string(status)
	e.thread.Ask(lock, InterruptsOf(e.State.At))
}

// copyBatch is how many items are copied in one transaction; an item of a log may be large.
const copyBatch = 50

// Copy makes a thread with the state and the history of another, which must not be busy, but without its runs.
func (s *Store) Copy(ctx context.Context, t Thread) (Thread, error) {
	if t.Lock.Busy {
		return Thread{}, BusyFault(t.Ref)
	}
	now := s.now()
	ref := t.Ref
	ref.Thread = id.New(now)
	for _, query := range keys.CheckpointLog(t.Workspace, t.Deployment, t.Thread) {
		if err := s.copyItems(ctx, ref, query); err != nil {
			return Thread{}, err
		}
	}
	return s.put(ctx, ref, t, now)
}

func (s *Store) copyItems(ctx context.Context, ref Ref, query table.Query) error {
	query.Limit = copyBatch
	for {
		page, err := s.table.Query(ctx, query)
		if err != nil {
			return fmt.Errorf("query thread to copy: %w", err)
		}
		var writes []table.Write
		for _, item := range page.Items {
			moved := *item
			moved.Key = keys.InThread(ref.Workspace, ref.Deployment, ref.Thread, item.Key)
			writes = append(writes, table.Put{Item: moved, If: table.Absent()})
		}
		if len(writes) > 0 {
			if err := s.table.Transact(ctx, writes...); err != nil {
				return fmt.Errorf("copy thread: %w", err)
			}
		}
		if page.Cursor == "" {
			return nil
		}
		query.Cursor = page.Cursor
	}
}

// put creates the copy itself, when everything else is there.
func (s *Store) put(ctx context.Context, ref Ref, t Thread, now time.Time) (Thread, error) {
	b := body{Metadata: t.Metadata}
	if string(t.Interrupts) != "{}" {
		b.Interrupts = t.Interrupts
	}
	item := table.Item{
		Key:   ref.Key(),
		Attrs: record.Attrs(kind, now, table.Attrs{AttrStatus: string(t.Status), AttrEpoch: int64(0), AttrCheckpoint: t.Lock.Checkpoint}),
		Body:  record.Encode(b),
		Index: map[table.Index]table.Key{table.ByList: keys.ThreadListEntry(ref.Workspace, ref.Deployment, ref.Thread, now)},
	}
	if !t.StateUpdated.IsZero() {
		item.Attrs[attrStateUpdated] = clock.Format(t.StateUpdated)
	}
	if err := s.table.Transact(ctx, table.Put{Item: item, If: table.Absent()}); err != nil {
		return Thread{}, fmt.Errorf("create copy: %w", err)
	}
	return decode(ref, &item)
}
