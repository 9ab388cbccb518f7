package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/id"
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
	// thread is as it was read when the run was taken up.
	thread thread.Thread
	// State is the thread's state as this attempt has written it.
	State *thread.State
	// events and writes wait for the next flush; size is what they hold, in bytes.
	events []Event
	writes []table.Write
	size   int
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
	a := &Attempt{store: s, Run: run, thread: t, State: thread.Empty(), opened: map[string]int64{}}
	if run.Attempt > 0 || t.Lock.Checkpoint >= 0 {
		if a.State, err = s.threads.State(ctx, ref.Ref); err != nil {
			return nil, err
		}
	}
	if run.Attempt == 0 {
		a.Run.Start, a.Run.Position = t.Lock.Position, t.Lock.Position
	}
	a.Run.Checkpoint = a.State.At.Number
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
	set := table.Attrs{attrStatus: string(Running), attrAttempt: a.Run.Attempt}
	return a.write(ctx, now, set, a.store.leaseEntry(a.Run.Run, now))
}

// Update folds the updates of nodes into the state, in their order, with the event that shows them.
func (a *Attempt) Update(name string, data json.RawMessage) error {
	a.append(Event{Name: name, Data: data})
	updates, err := members(data)
	if err != nil {
		return fmt.Errorf("updates are not an object by node: %w", err)
	}
	if len(updates) > maxNodes {
		return fmt.Errorf("an event updates %d nodes: the limit is %d", len(updates), maxNodes)
	}
	for _, update := range updates {
		if !state.IsObject(update) {
			continue // a node that changed nothing reports null
		}
		if err := a.fold(update, thread.SourceLoop); err != nil {
			return err
		}
	}
	return nil
}

// members returns the values of an object in the order in which they stand in it.
func members(object json.RawMessage) ([]json.RawMessage, error) {
	if !state.IsObject(object) {
		return nil, fmt.Errorf("%.40s", object)
	}
	decoder := json.NewDecoder(bytes.NewReader(object))
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	var values []json.RawMessage
	for decoder.More() {
		if _, err := decoder.Token(); err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
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
	message := state.ChunkOf(data)
	if _, known := a.opened[message]; !known && message != "" {
		a.opened[message] = position - 1
	}
}

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
		put := a.State.Advance(a.Run.Ref.Ref, a.store.now(), a.Run.Run, source, patch)
		a.writes = append(a.writes, put)
		a.size += len(put.Item.Body)
		a.Run.Checkpoint = a.State.At.Number
		a.closeMessages(source == thread.SourceLoop && patch.Touches(state.Messages))
	}
	a.append(Event{Name: EventValues, Checkpoint: a.State.At.Number})
}

// closeMessages forgets the shown messages that the state holds now, and, once this attempt has written a message in their place, those
// of earlier attempts.
func (a *Attempt) closeMessages(wrote bool) {
	for message := range a.opened {
		if a.State.Values.Has(message) {
			delete(a.opened, message)
		}
	}
	if wrote {
		a.Run.Open = 0
	}
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
