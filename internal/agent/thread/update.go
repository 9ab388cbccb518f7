package thread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// EndNode is the name under which an update ends the graph: it waits for nothing any more.
const EndNode = "__end__"

// Edit is a change of a thread's state that belongs to no run. It is made on the state as it was
// read, and stored if no run has begun since. It belongs to one goroutine.
type Edit struct {
	store  *Store
	thread Thread
	// Log is the log with all changes so far.
	Log Log
	// Within is the newest subgraph checkpoint that the agent made, if it made one.
	Within graph.Checkpoint
	writes []table.Write
	// ended says that an update without the agent has ended the graph.
	ended bool
}

// Edit begins a change of the state at a checkpoint, which may be the Newest. A thread whose
// run is in flight is a fault.Conflict. The leftovers of earlier runs must be in the state
// already.
func (s *Store) Edit(ctx context.Context, t Thread, number int64) (*Edit, error) {
	if t.Lock.Busy {
		return nil, BusyFault(t.Ref)
	}
	if err := t.Usable(); err != nil {
		return nil, err
	}
	e := &Edit{store: s, thread: t}
	if number == Newest {
		number = t.Lock.Checkpoint
	}
	at, err := s.StateAt(ctx, t.Ref, number)
	if err != nil {
		return nil, err
	}
	e.Log = NewLog(t.Ref, at)
	if number != t.Lock.Checkpoint {
		pending, err := s.Pending(ctx, t.Ref, at.At, "")
		if err != nil {
			return nil, err
		}
		e.Log = e.Log.Fork(t.Lock.Checkpoint, pending)
	}
	return e, nil
}

// Before returns the data that an agent needs to make the change itself: its own checkpoint,
// and the updates that it does not have yet.
func (e *Edit) Before(ctx context.Context) (*graph.Checkpoints, []graph.StateUpdate, error) {
	var err error
	if e.Log, err = e.store.ReadFrame(ctx, e.Log); err != nil {
		return nil, nil, err
	}
	pending, err := e.store.Pending(ctx, e.thread.Ref, e.Log.At, "")
	return e.Log.Checkpoints(), pending, err
}

// Fold makes updates as nodes, through the server's own reducers, and one checkpoint of all of
// them. Updates that change nothing make a checkpoint, too.
func (e *Edit) Fold(graphID string, updates []graph.StateUpdate) error {
	now := e.store.now()
	newID := func() string { return id.New(now) }
	after := e.Log.Values
	var pending []graph.StateUpdate
	for _, update := range updates {
		for _, values := range oneOrMany(update) {
			coerced, err := state.Coerce(values, newID)
			if err != nil {
				return fault.New(fault.Invalid, "The values cannot be applied: %v.", err)
			}
			after, _ = after.Reduce(coerced)
			pending = append(pending, graph.StateUpdate{Values: coerced.JSON(), AsNode: update.AsNode})
		}
		e.ended = e.ended || update.AsNode == EndNode
	}
	change := Change{Graph: graphID, Source: SourceUpdate, Values: after, Patch: after.Since(e.Log.Values), Pending: pending}
	return e.apply(e.Log.Apply(now, change))
}

// apply takes the result of a change of the log.
func (e *Edit) apply(next Log, writes []table.Write, err error) error {
	if err == nil {
		e.Log, e.writes = next, append(e.writes, writes...)
	}
	return err
}

// oneOrMany returns the values of an update. A list has several values. The values of a
// command are the command's own update.
func oneOrMany(update graph.StateUpdate) []json.RawMessage {
	values := update.Values
	if state.Present(values) == nil {
		var command struct{ Update json.RawMessage }
		if len(update.Command) > 0 && json.Unmarshal(update.Command, &command) == nil && len(command.Update) > 0 {
			values = command.Update
		}
	}
	if list := state.OneOrMany(values); list != nil {
		return list
	}
	return []json.RawMessage{state.OrNull(values)}
}

// Follow takes a checkpoint that the agent has made of the change. Checkpoints of subgraphs
// are stored with it.
func (e *Edit) Follow(graphID string, c graph.Checkpoint) error {
	if err := CheckTasks(c.Tasks); err != nil {
		return err
	}
	now := e.store.now()
	if c.NS != "" {
		e.Within = c
		return e.apply(e.Log.Subgraph(now, c))
	}
	if next, put, same, err := e.Log.Rewrite(c); same || err != nil {
		e.Log, e.writes = next, Replace(e.writes, put)
		return err
	}
	values, patch, err := e.Log.Values.Replace(state.OrNull(c.Values))
	if err != nil {
		return err
	}
	change := Change{Graph: graphID, Source: SourceUpdate, Values: values, Patch: patch, Agent: &c}
	return e.apply(e.Log.Apply(now, change))
}

// Replace returns the writes with one write in the place of the waiting write with the same key,
// or behind the others if there is no such write. It does not change writes.
func Replace(writes []table.Write, put table.Put) []table.Write {
	for i, write := range writes {
		if waiting, ok := write.(table.Put); ok && waiting.Item.Key == put.Item.Key {
			put.If = waiting.If
			writes = slices.Clone(writes)
			writes[i] = put
			return writes
		}
	}
	return append(writes, put)
}

// maxEdit is how many writes an edit may have: it is stored as a whole or not at all, in one
// transaction with the lock.
const maxEdit = table.MaxWrites - 1

// Commit stores the change. If a run was created meanwhile, Commit returns a fault.Conflict.
func (e *Edit) Commit(ctx context.Context) error {
	switch {
	case len(e.writes) == 0:
		return nil
	case len(e.writes) > maxEdit:
		return fault.New(fault.Invalid, "The change makes %d checkpoints, or items that are kept with them: the limit is %d. Make it in several requests.", len(e.writes), maxEdit)
	}
	size := 0
	for _, write := range e.writes {
		if put, ok := write.(table.Put); ok {
			if err := CheckSize(put, e.Log.Values, table.MaxBody); err != nil {
				return fault.New(fault.TooLarge, "%s", err.Error())
			}
			size += quota.Size(&put.Item)
		}
	}
	if err := e.store.CheckRoom(ctx, e.thread.Workspace, size); err != nil {
		return err
	}
	lock := e.thread.ChangeLock(e.store.now())
	e.thread.markCheckpoint(&lock, e.Log.last)
	e.setIdleView(&lock)
	stored, err := record.Try(ctx, e.store.table, append(e.writes, lock)...)
	if err == nil && !stored {
		return BusyFault(e.thread.Ref)
	}
	return err
}

// setIdleView sets the thread's status and questions from the agent's own checkpoint: they show
// whether the checkpoint waits for anything. A graph without checkpoints waits for nothing more if
// an update ends it.
func (e *Edit) setIdleView(lock *table.Update) {
	view := IdleView{Status: StatusIdle, Run: e.thread.IdleView.Run}
	switch {
	case e.Log.At.Own():
		view.Interrupts = InterruptsOf(e.Log.At)
	case !e.ended || e.thread.IdleView.Status != StatusInterrupted:
		return
	}
	if len(e.Log.At.Next) > 0 {
		view.Status = StatusInterrupted
	}
	e.thread.SetIdleView(lock, view)
}

// copyBatch is how many items are copied in one transaction, copyBytes how many bytes these
// items may have without the last of them.
const (
	copyBatch = 50
	copyBytes = 1 << 20
	// copyTime is how long a copy may take. After that, a timer erases the copied items.
	copyTime = time.Hour
)

// Copy makes a thread with the state and the history of another thread, but without its runs. Of a
// busy thread it copies the checkpoints that exist by now. If the lock of the other thread
// changes meanwhile, Copy returns a fault.Conflict, and nothing of the copy is left. If the process
// dies, Sweep erases the copied items. The copy has a time to live; nil means for ever.
func (s *Store) Copy(ctx context.Context, t Thread, ttl *TTL) (Thread, error) {
	if err := t.Usable(); err != nil {
		return Thread{}, err
	}
	if t.Lock.NeedsSeal() {
		return Thread{}, changedMeanwhile(t.Ref)
	}
	now := s.now()
	if t.Lock.Busy { // the run goes on, and only adds to the log
		newest, err := s.State(ctx, t.Ref)
		if err != nil {
			return Thread{}, err
		}
		t.IdleView, t.StateUpdated = IdleView{Status: StatusIdle}, newest.At.Created
		t.Lock.Checkpoint = newest.At.Number
	}
	ref := t.Ref
	ref.Thread = id.New(now)
	copied, err := s.copy(ctx, ref, t, ttl, now)
	if err != nil {
		return Thread{}, errors.Join(err, s.erasePartition(context.WithoutCancel(ctx), ref.Key()))
	}
	return copied, nil
}

func (s *Store) copy(ctx context.Context, ref Ref, t Thread, ttl *TTL, now time.Time) (Thread, error) {
	if err := s.CheckRoom(ctx, t.Workspace, int(t.Stored)); err != nil {
		return Thread{}, err
	}
	if err := s.table.Transact(ctx, s.putTTL(ref, TTL{Strategy: StrategyDelete}, now, now.Add(copyTime))); err != nil {
		return Thread{}, fmt.Errorf("begin a copy of a thread: %w", err)
	}
	size := 0
	for _, query := range keys.CheckpointLog(t.Workspace, t.Deployment, t.Thread) {
		copied, err := s.copyItems(ctx, ref, t, query)
		if err != nil {
			return Thread{}, err
		}
		size += copied
	}
	created, err := s.put(ctx, ref, t, ttl, now)
	if err == nil { // bytes written before the thread existed could not be noted in it
		count(ctx, s.pool, ref, s.pool.Draw(size))
	}
	return created, err
}

// copyItems copies the items that a query finds, and returns their size. Each part is written under
// the condition that the thread is still as it was read.
func (s *Store) copyItems(ctx context.Context, ref Ref, t Thread, query table.Query) (size int, err error) {
	query.Limit, query.Bytes = copyBatch, copyBytes
	for items, err := range table.Pages(ctx, s.table, query) {
		if err != nil {
			return size, fmt.Errorf("query thread to copy: %w", err)
		}
		var writes []table.Write
		for _, item := range items {
			later, err := isLater(item, t.Lock.Checkpoint)
			if err != nil {
				return size, err
			}
			if later {
				continue
			}
			moved := *item
			size += quota.Size(item)
			moved.Key = keys.InThread(ref.Workspace, ref.Deployment, ref.Thread, item.Key)
			writes = append(writes, table.Put{Item: moved, If: table.Absent()})
		}
		if len(writes) > 0 {
			if err := s.commitAsRead(ctx, t.Ref, record.Write(append(writes, t.CheckLock())...)); err != nil {
				return size, err
			}
		}
	}
	return size, nil
}

// isLater reports whether an item of a thread's log belongs to a later checkpoint.
func isLater(item *table.Item, than int64) (bool, error) {
	if item.Text(record.Kind) == nameKind {
		return item.Int(attrNumber) > than, nil
	}
	number, err := keys.LogNumber(item.Key)
	return number > than, err
}

// put creates the copy's thread item, after all other items exist, and ends the time that the copy
// may take.
func (s *Store) put(ctx context.Context, ref Ref, t Thread, ttl *TTL, now time.Time) (Thread, error) {
	copied := t
	copied.Config = nil // it has no runs yet
	own := table.Attrs{attrStatus: string(t.IdleView.Status), attrEpoch: int64(0), attrCheckpoint: t.Lock.Checkpoint}
	item := record.Item(ref.Key(), kind, now, own, copied.encodeBody())
	item.Index = map[table.Index]table.Key{table.ByList: keys.ThreadListEntry(ref.Workspace, ref.Deployment, ref.Thread, now)}
	if !t.StateUpdated.IsZero() {
		item.Attrs[attrStateUpdated] = clock.Format(t.StateUpdated)
	}
	place := s.reserveThread(ref)
	err := record.Decide(ctx, s.table, func(ctx context.Context) (o record.Outbox, err error) {
		if err := place.Take(ctx, &o); err != nil {
			return o, err
		}
		item.Attrs[attrPart] = int64(place.Part())
		o.AddOr(table.Put{Item: item, If: table.Absent()}, record.Always(changedMeanwhile(t.Ref)))
		o.AddOr(s.replaceTTL(ref, ttl, now), record.Always(changedMeanwhile(t.Ref)))
		o.AddOr(t.CheckLock(), record.Always(changedMeanwhile(t.Ref)))
		return o, nil
	})
	if err != nil {
		return Thread{}, err
	}
	return decode(ref, &item)
}
