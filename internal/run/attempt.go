package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/id"
	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/state"
	"github.com/slipway-run/slipway/internal/table"
	"github.com/slipway-run/slipway/internal/thread"
)

// MaxAttempts is how many workers may take a run up before it ends as Error.
const MaxAttempts = 3

// ErrFenced is returned to a worker that no longer owns its attempt. It stops; it cannot write any more.
var ErrFenced = errors.New("the run was taken from this worker")

// ErrNothingToDo is returned by Claim for a run that needs no worker: it is over, was superseded, or waits for its turn.
var ErrNothingToDo = errors.New("the run needs no worker")

// ErrAttemptsExhausted is returned by Claim for a run that MaxAttempts workers have taken up.
var ErrAttemptsExhausted = errors.New("the run has no attempt left")

// Attempt is a worker's claim on a run. It belongs to one goroutine.
type Attempt struct {
	store *Store
	Run   Run
	// State is the thread's state as this attempt has written it.
	State *thread.State
	// events and writes wait for the next flush.
	events []Event
	writes []table.Write
	// opened holds the position before the first chunk of each message of this attempt that is not finished.
	opened  map[string]int64
	renewed time.Time
	// fence is the condition of the next write.
	fence table.Cond
}

// Claim makes the caller the owner of the next attempt at a run: whoever had it before is fenced off. It seals what came before, and the first
// attempt folds the run's input into the state.
func (s *Store) Claim(ctx context.Context, ref Ref) (*Attempt, error) {
	for range contention {
		a, err := s.take(ctx, ref)
		if err != nil {
			return nil, err
		}
		if a.Run.Attempt >= MaxAttempts {
			return nil, ErrAttemptsExhausted
		}
		if err := a.begin(ctx); !errors.Is(err, ErrFenced) {
			return a, err
		}
		// Another worker, or another request, changed the run meanwhile: look again.
	}
	return nil, fmt.Errorf("claim run %s: others kept changing it", ref.Run)
}

// take reads an unfinished active run with its thread's state, everything before it sealed. The attempt that it returns is the present one; its
// fence holds until somebody changes the run.
func (s *Store) take(ctx context.Context, ref Ref) (*Attempt, error) {
	t, run, err := s.read(ctx, ref)
	if err != nil {
		return nil, err
	}
	if run.Status.Final() || run.Run != t.Lock.Run {
		return nil, ErrNothingToDo
	}
	if t.Lock.Unsealed {
		if t, err = s.Seal(ctx, ref.Ref); err != nil {
			return nil, err
		}
	}
	a := &Attempt{store: s, Run: run, State: thread.Empty(), opened: map[string]int64{}}
	if run.Attempt > 0 || t.Lock.Checkpoint >= 0 {
		if a.State, err = s.threads.State(ctx, ref.Ref); err != nil {
			return nil, err
		}
	}
	if run.Attempt == 0 {
		a.Run.Start, a.Run.Position = t.Lock.Position, t.Lock.Position
	}
	a.fence = fence(run)
	return a, nil
}

// fence is the condition that nobody has changed a run since it was read.
func fence(run Run) table.Cond {
	return table.All(
		table.Equals(attrStatus, string(run.Status)),
		table.Equals(attrAttempt, run.Attempt),
		table.Equals(attrPosition, run.Position),
	)
}

// begin writes the claim.
func (a *Attempt) begin(ctx context.Context) error {
	now := a.store.now()
	a.Run.Attempt++
	a.Run.Status = Running
	a.append(Event{Name: EventMetadata, Data: record.Encode(map[string]any{"run_id": a.Run.Run, "attempt": a.Run.Attempt})})
	if a.Run.Attempt == 1 && state.IsObject(a.Run.Input) {
		if err := a.fold(a.Run.Input, thread.SourceInput); err != nil {
			return err
		}
	}
	a.renewed = now
	set := table.Attrs{attrStatus: string(Running), attrAttempt: a.Run.Attempt, attrStart: a.Run.Start}
	return a.write(ctx, now, set, a.store.leaseEntry(a.Run.Run, now))
}

// Update folds a node's update into the state, with the event that shows it.
func (a *Attempt) Update(name string, data json.RawMessage) error {
	a.append(Event{Name: name, Data: data})
	var nodes map[string]json.RawMessage
	if err := json.Unmarshal(data, &nodes); err != nil {
		return fmt.Errorf("updates are not an object by node: %w", err)
	}
	for _, update := range nodes {
		if !state.IsObject(update) {
			continue // a node that changed nothing reports null
		}
		if err := a.fold(update, thread.SourceLoop); err != nil {
			return err
		}
	}
	return nil
}

// Values makes the state what the agent says it is.
func (a *Attempt) Values(data json.RawMessage) error {
	patch, err := a.State.Values.Replace(data)
	if err != nil {
		return err
	}
	a.checkpoint(patch, thread.SourceLoop)
	return nil
}

// Show takes any other event. Chunks of messages are remembered until their message is in the state.
func (a *Attempt) Show(name string, data json.RawMessage) {
	position := a.append(Event{Name: name, Data: data})
	if name != EventMessages {
		return
	}
	var pair []struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(data, &pair) != nil || len(pair) == 0 {
		return
	}
	if _, known := a.opened[pair[0].ID]; !known {
		a.opened[pair[0].ID] = position - 1
	}
}

// Waiting is how many events wait for the next flush.
func (a *Attempt) Waiting() int { return len(a.events) }

func (a *Attempt) fold(update json.RawMessage, source thread.Source) error {
	patch, err := a.State.Values.Reduce(update, func() string { return id.New(a.store.now()) })
	if err != nil {
		return err
	}
	a.checkpoint(patch, source)
	return nil
}

// checkpoint records a change of the state, and shows it to readers of values.
func (a *Attempt) checkpoint(patch state.Patch, source thread.Source) {
	if !patch.Empty() {
		a.writes = append(a.writes, a.State.Advance(a.Run.Ref.Ref, a.store.now(), a.Run.Run, source, patch))
		a.Run.Checkpoint = a.State.At.Number
		a.closeMessages(source)
	}
	a.append(Event{Name: EventValues, Checkpoint: a.State.At.Number})
}

// closeMessages forgets the shown messages that the state holds now, and, once this attempt has made a step, those of earlier attempts.
func (a *Attempt) closeMessages(source thread.Source) {
	for message := range a.opened {
		if a.State.Values.Has(message) {
			delete(a.opened, message)
		}
	}
	if source == thread.SourceLoop {
		a.Run.Open = 0
	}
}

func (a *Attempt) append(event Event) int64 {
	a.Run.Position++
	event.Position = a.Run.Position
	a.events = append(a.events, event)
	return event.Position
}

// Flush makes everything since the last flush durable and visible. ErrFenced means that the attempt is over.
func (a *Attempt) Flush(ctx context.Context) error {
	now := a.store.now()
	var lease map[table.Index]table.Key
	if now.Sub(a.renewed) > a.store.lease/3 {
		lease = a.store.leaseEntry(a.Run.Run, now)
	}
	if len(a.events) == 0 && lease == nil {
		return nil
	}
	if err := a.write(ctx, now, table.Attrs{}, lease); err != nil {
		return err
	}
	if lease != nil {
		a.renewed = now
	}
	return nil
}

// change returns the write that moves the run to what was shown so far.
func (a *Attempt) change(now time.Time, set table.Attrs, index map[table.Index]table.Key) table.Update {
	set[attrPosition], set[attrCheckpoint], set[attrOpen] = a.Run.Position, a.Run.Checkpoint, a.open()
	change := record.Change(a.Run.Key(), now, set, a.fence)
	change.Index = index
	return change
}

// open is the position before everything that was shown but is not in the state.
func (a *Attempt) open() int64 {
	open := a.Run.Open // of earlier attempts
	for _, position := range a.opened {
		if open == 0 || position < open {
			open = position
		}
	}
	return open
}

// waiting takes the writes that wait, with the batch of events among them.
func (a *Attempt) waiting(now time.Time) []table.Write {
	writes := a.writes
	if len(a.events) > 0 {
		writes = append(writes, putEvents(a.Run.Ref.Ref, now, a.Run.Attempt, a.events))
	}
	a.events, a.writes = nil, nil
	return writes
}

func (a *Attempt) write(ctx context.Context, now time.Time, set table.Attrs, index map[table.Index]table.Key) error {
	writes := append([]table.Write{a.change(now, set, index)}, a.waiting(now)...)
	err := a.store.table.Transact(ctx, writes...)
	var failed *table.ConditionFailed
	if errors.As(err, &failed) {
		return ErrFenced
	}
	if err != nil {
		return fmt.Errorf("write run: %w", err)
	}
	a.fence = fence(a.Run)
	return nil
}

// read returns a run and its thread.
func (s *Store) read(ctx context.Context, ref Ref) (thread.Thread, Run, error) {
	items, err := s.table.GetBatch(ctx, ref.Ref.Key(), ref.Key())
	if err != nil {
		return thread.Thread{}, Run{}, fmt.Errorf("get run: %w", err)
	}
	t, err := thread.Decode(ref.Ref, items[0])
	if err != nil {
		return thread.Thread{}, Run{}, err
	}
	if items[1] == nil {
		return thread.Thread{}, Run{}, notFound(ref)
	}
	run, err := decode(ref, items[1], t.Lock)
	return t, run, err
}

// nextQueued returns the oldest run that waits behind one.
func (s *Store) nextQueued(ctx context.Context, ref Ref) (string, error) {
	query := keys.RunsAfter(ref.Workspace, ref.Deployment, ref.Thread, ref.Run)
	query.Limit = 1
	page, err := s.table.Query(ctx, query)
	if err != nil {
		return "", fmt.Errorf("query queued runs: %w", err)
	}
	if len(page.Items) == 0 {
		return "", nil
	}
	return keys.RunID(page.Items[0].Key), nil
}

// WatchAttempt wakes a worker when its run changes, its own writes included.
func (s *Store) WatchAttempt(a *Attempt) table.Watcher { return s.table.Watch(a.Run.Key()) }

// Owned returns ErrFenced when the attempt no longer is its worker's.
func (s *Store) Owned(ctx context.Context, a *Attempt) error {
	item, err := s.table.Get(ctx, a.Run.Key())
	if errors.Is(err, table.ErrNotFound) {
		return ErrFenced
	}
	if err != nil {
		return fmt.Errorf("get run: %w", err)
	}
	if Status(item.Text(attrStatus)) != Running || item.Int(attrAttempt) != a.Run.Attempt {
		return ErrFenced
	}
	return nil
}
