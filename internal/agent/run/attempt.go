package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// MaxAttempts is how many attempts at a run may fail before the run ends as Error. An attempt
// fails when its worker dies or when its agent fails. Slices do not count.
const MaxAttempts = 3

// MaxIdleSlices is how many slices in a row may pass without a step of the run before the run
// ends as Timeout: the next slice would do the same again.
const MaxIdleSlices = 3

// ErrFenced is returned to a worker that no longer owns the run. The worker must stop: none of its
// later writes can succeed.
var ErrFenced = errors.New("the run was taken from this worker")

// ErrNothingToDo is returned by Claim for a run that needs no worker: the run has ended, was
// superseded or removed, or is not the thread's active run.
var ErrNothingToDo = errors.New("the run needs no worker")

// ErrAttemptsExhausted is returned by Claim for a run with MaxAttempts failed attempts.
var ErrAttemptsExhausted = errors.New("the run has no attempt left")

// ErrNoProgress is returned by Claim for a run that made no step in MaxIdleSlices slices.
var ErrNoProgress = errors.New("the run makes no progress")

// TooLargeError says that a state, or the part of it that an agent stores, is larger than a
// table can hold. The worker must end the run with Fail, which keeps only the changes that
// were written before: the attempt's state in memory already contains the rejected change.
type TooLargeError struct{ Size int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("The thread's state would hold %d bytes: the limit is %d.", e.Size, table.MaxBody)
}

// Failure returns the failure to store on a run whose leftovers could not be kept.
func (e *TooLargeError) Failure() *Failure {
	return &Failure{Name: FailureStateTooLarge, Message: e.Error() + " What the run had not finished is not in it."}
}

// fits returns a TooLargeError if the item's body is larger than table.MaxBody bytes.
func fits(put table.Put) error {
	if size := len(put.Item.Body); size > table.MaxBody {
		return &TooLargeError{Size: size}
	}
	return nil
}

// NotDueError is returned by Claim for a delayed run whose due time has not come.
type NotDueError struct{ Due time.Time }

func (e *NotDueError) Error() string { return "the run is not due before " + clock.Format(e.Due) }

// Attempt is a worker's claim on a run. It belongs to one goroutine.
type Attempt struct {
	store *Store
	Run   Run
	// thread is the thread as it was read when the attempt took the run.
	thread thread.Thread
	// State is the thread's state as this attempt has written it.
	State *thread.State
	// Pending are the updates that the agent's own checkpoint lacked when the attempt began.
	Pending []graph.StateUpdate
	// frame holds the checkpoints from which an agent that keeps checkpoints goes on.
	frame *thread.Frame
	// shown are the values that readers saw last, nil before readers saw any values.
	shown *state.Values
	// updates are the updates that nodes of an agent that keeps checkpoints have returned
	// since the agent's newest checkpoint.
	updates []json.RawMessage
	// unshown says that readers have not seen the values with the run's input.
	unshown bool
	// amended says that the agent has sent its newest checkpoint again, with new results of
	// its tasks.
	amended bool
	// events and writes wait for the next flush; size is the size of their data in bytes.
	events []Event
	writes []table.Write
	size   int
	// tellsUnfinished says that the agent itself reports which messages are unfinished.
	tellsUnfinished bool
	// unfinishedChanged says that the run's unfinished messages are not written yet.
	unfinishedChanged bool
	renewed           time.Time
	// lossy says that the run's leftovers are not kept, because the state cannot hold them.
	lossy bool
	// stepped says that this attempt has made a step.
	stepped bool
	// fence is the condition of the next write.
	fence table.Cond
	// unsure is the error of a write that may have been applied or not. No write can follow
	// it: the caller must read the run anew to go on.
	unsure error
}

// Claim makes the caller the owner of the run's next attempt and fences off the previous attempt.
// It first seals the thread. The first attempt also adds the run's input to the state and takes one
// of the deployment's permits; permits is 0 if there is no limit. Claim returns ErrWaitsForPermit
// if no permit is free.
func (s *Store) Claim(ctx context.Context, ref Ref, permits int) (*Attempt, error) {
	return retake(ctx, func(ctx context.Context) (*Attempt, error) {
		a, err := s.take(ctx, ref)
		if err != nil {
			return nil, err
		}
		if err := a.count(); err != nil {
			return nil, err
		}
		if err = a.takePermit(ctx, permits); err == nil {
			err = a.prepare(ctx)
		}
		if err == nil {
			err = a.begin(ctx)
		}
		return a, err
	})
}

// retake repeats work, which commits its own writes, each time it fails because another worker or
// request changed the run.
func retake[T any](ctx context.Context, work func(context.Context) (T, error)) (T, error) {
	return record.Retry(ctx, func(ctx context.Context) (T, error) {
		value, err := work(ctx)
		if errors.Is(err, ErrFenced) {
			err = record.ErrLost
		}
		return value, err
	})
}

// count counts the previous attempt as a failure unless it was handed over, and returns an error if
// the run may not have another attempt.
func (a *Attempt) count() error {
	a.Run.Handed = max(a.Run.Handed, 0)
	if a.Run.Attempt > a.Run.Handed {
		a.Run.Failures++
	}
	if a.Run.Failures >= MaxAttempts {
		return ErrAttemptsExhausted
	}
	if a.Run.Idle >= MaxIdleSlices {
		return ErrNoProgress
	}
	return nil
}

// take seals the thread, and reads its active run and its state. The attempt that it returns has
// the run's current number; its fence holds until the run changes.
func (s *Store) take(ctx context.Context, ref Ref) (*Attempt, error) {
	t, run, err := s.getWithThread(ctx, ref)
	if fault.Is(err, fault.NotFound) {
		return nil, ErrNothingToDo // it was removed
	}
	if err != nil {
		return nil, err
	}
	if run.Status.Final() || run.Run != t.Lock.Run {
		return nil, ErrNothingToDo
	}
	if err := s.loadBulk(ctx, &run); err != nil {
		return nil, err
	}
	var left *thread.State
	if t.Lock.Unsealed {
		if t, left, err = s.seal(ctx, t); err != nil {
			return nil, err
		}
	}
	if run.Attempt == 0 && run.Due.After(s.now()) {
		return nil, &NotDueError{Due: run.Due}
	}
	if left == nil {
		if left, err = s.stateBefore(ctx, t, run); err != nil {
			return nil, err
		}
	}
	return s.attempt(t, run, left), nil
}

// stateBefore returns the state from which the run's next attempt continues. The first run of a
// thread needs no read.
func (s *Store) stateBefore(ctx context.Context, t thread.Thread, run Run) (*thread.State, error) {
	if run.Attempt == 0 && t.Lock.Checkpoint < 0 {
		return thread.Empty(), nil
	}
	return s.threads.State(ctx, t.Ref)
}

// attempt returns the run's current attempt, built from the thread, run and state that were read.
func (s *Store) attempt(t thread.Thread, run Run, from *thread.State) *Attempt {
	a := &Attempt{store: s, Run: run, thread: t, State: from, fence: fence(run)}
	if run.Attempt == 0 {
		a.Run.Start, a.Run.Position, a.Run.Before = t.Lock.Position, t.Lock.Position, t.Lock.Checkpoint
	}
	// If earlier attempts emitted only their start event, readers have not seen the run's input
	// yet.
	a.unshown = run.Attempt > 0 && run.Position-run.Start == run.Attempt && a.State.At.Number >= 0
	a.Run.Checkpoint = a.State.At.Number
	return a
}

// prepare loads the agent's pending updates and its own checkpoint. The first attempt of a run that
// forks from an earlier checkpoint loads the state of that checkpoint.
func (a *Attempt) prepare(ctx context.Context) (err error) {
	threads, own := a.store.threads, a.Run.Run
	branch := a.Run.Attempt == 0 && a.Run.Fork != nil && a.Run.Fork.Number != a.thread.Lock.Checkpoint
	if branch {
		if a.State, err = threads.StateAt(ctx, a.Run.Ref.Ref, a.Run.Fork.Number); err != nil {
			return err
		}
		if a.Run.Fork.Number >= 0 && a.State.At.ID != a.Run.Fork.ID {
			return fmt.Errorf("checkpoint %s of run %s is gone", a.Run.Fork.ID, own)
		}
	}
	if a.Pending, err = threads.Pending(ctx, a.Run.Ref.Ref, a.State.At, own); err != nil {
		return err
	}
	if a.frame, err = threads.Frame(ctx, a.Run.Ref.Ref, a.State.At.Agent); err != nil {
		return err
	}
	if branch {
		a.State.Fork(a.thread.Lock.Checkpoint, a.Pending)
	}
	return nil
}

// Checkpoints returns the agent's own checkpoints to continue from, nil before the agent's
// first checkpoint.
func (a *Attempt) Checkpoints() *graph.Checkpoints { return a.frame.Checkpoints() }

// agentHasCheckpoints reports whether the agent keeps its own checkpoints on this thread. In
// that case the state comes from these checkpoints, not from the agent's updates.
func (a *Attempt) agentHasCheckpoints() bool { return a.State.At.Agent != nil }

// fence is the condition that the stored run still has the given status, attempt number, position
// and last handover.
func fence(run Run) table.Cond {
	unchanged := table.All(
		table.Equals(attrStatus, string(run.Status)),
		table.Equals(attrAttempt, run.Attempt),
		table.Equals(attrPosition, run.Position),
	)
	if run.Handed < 0 {
		return unchanged
	}
	return table.All(unchanged, table.Equals(attrHanded, run.Handed))
}

// begin writes the claim. A delayed run can lose the lock to another run, and get it back after
// that run wrote to the thread, so its first claim also requires the lock's epoch that was read.
// Any other run cannot lose the lock without a write to its own item, which the fence detects.
func (a *Attempt) begin(ctx context.Context) error {
	now := a.store.now()
	a.Run.Attempt++
	a.Run.Status = Running
	a.append(Event{Name: EventMetadata, Data: record.Encode(map[string]any{"run_id": a.Run.Run, "attempt": a.Run.Attempt})})
	if a.Run.Attempt == 1 {
		if err := a.foldInput(); err != nil {
			return err
		}
	}
	a.renewed = now
	if a.Run.Attempt == 1 && !a.Run.Due.IsZero() {
		a.writes = append(a.writes, a.thread.CheckLock())
	}
	set := table.Attrs{attrStatus: string(Running), attrAttempt: a.Run.Attempt, attrHanded: a.Run.Handed, attrFailures: a.Run.Failures}
	if a.Run.Attempt == 1 {
		a.Run.Started = now
		a.Run.AgentCheckpoint, a.Run.AgentItems = a.frame.End()
		set[attrStarted], set[attrAgentCheckpoint], set[attrAgentItems] = clock.Format(now), a.Run.AgentCheckpoint, a.Run.AgentItems
		if a.Run.Permit != 0 {
			set[attrPermit] = a.Run.Permit
		}
	}
	err := a.write(ctx, now, set, a.store.leaseEntry(a.Run.Run, now))
	if err == nil && a.Run.Attempt == 1 && a.store.watcher != nil {
		a.store.watcher.Started(ctx, a.Run, now.Sub(later(a.Run.Created, a.Run.Due)))
	}
	return err
}

// foldInput adds the run's input, or the update of its command, to the state. An agent that keeps
// checkpoints applies a command's update itself.
func (a *Attempt) foldInput() error {
	input := a.Run.Input
	if !state.IsObject(input) && !a.agentHasCheckpoints() {
		input = commandUpdate(a.Run.Command)
	}
	if state.IsObject(input) {
		return a.foldAs(input, thread.SourceInput, nodeInput)
	}
	if a.State.Forks() {
		return a.checkpoint(state.Patch{}, thread.SourceFork, nil)
	}
	if a.State.At.Number >= 0 && commandUpdate(a.Run.Command) == nil {
		a.showValues() // the values from which the run goes on
	}
	return nil
}

// nodeInput is the node name under which a run's input is added to the state.
const nodeInput = "__input__"

// commandUpdate returns the update of a command as an object. In the command the update may
// also be a list of pairs. commandUpdate returns nil if the command has no update.
func commandUpdate(command json.RawMessage) json.RawMessage {
	var c struct{ Update json.RawMessage }
	if len(command) == 0 || json.Unmarshal(command, &c) != nil || state.IsObject(c.Update) {
		return c.Update
	}
	var pairs [][]json.RawMessage
	if json.Unmarshal(c.Update, &pairs) != nil {
		return nil
	}
	object := map[string]json.RawMessage{}
	for _, pair := range pairs {
		var name string
		if len(pair) != 2 || json.Unmarshal(pair[0], &name) != nil {
			return nil
		}
		object[name] = pair[1]
	}
	return record.Encode(object)
}

// Update shows the updates of nodes and folds them into the state in their order. It does not
// fold them if the state comes from the agent's own checkpoints.
func (a *Attempt) Update(name string, data json.RawMessage) error {
	a.reveal()
	position := a.append(Event{Name: name, Data: data})
	updates, err := state.Members(data)
	if err != nil {
		return fmt.Errorf("updates are not an object by node: %.40s", data)
	}
	a.finishNodes(updates)
	if a.agentHasCheckpoints() {
		if a.Run.Unfolded == 0 {
			a.Run.Unfolded = position - 1
		}
		for _, update := range updates {
			a.updates = append(a.updates, update.Value)
		}
		return nil
	}
	if len(updates) > maxNodes {
		return fmt.Errorf("an event updates %d nodes: the limit is %d", len(updates), maxNodes)
	}
	for _, update := range updates {
		if !state.IsObject(update.Value) {
			continue // a node that changed nothing reports null
		}
		if err := a.foldAs(update.Value, thread.SourceLoop, update.Name); err != nil {
			return err
		}
	}
	return nil
}

// Values replaces the state with the values that the agent sends. It does nothing if the state
// comes from the agent's own checkpoints.
func (a *Attempt) Values(data json.RawMessage) error {
	if a.agentHasCheckpoints() {
		return nil
	}
	a.reveal()
	patch, err := a.State.Values.Replace(data)
	if err != nil {
		return err
	}
	a.finishAll()
	return a.checkpoint(patch, thread.SourceLoop, nil)
}

// Show takes an event of any other kind.
func (a *Attempt) Show(name string, data json.RawMessage) {
	a.reveal()
	position := a.append(Event{Name: name, Data: data})
	if name == EventMessages {
		a.beginMessage(data, position-1)
	}
}

// foldAs folds an update into the state as the update of the given node.
func (a *Attempt) foldAs(update json.RawMessage, source thread.Source, node string) error {
	newID := func() string { return id.New(a.store.now()) }
	var pending []graph.StateUpdate
	if source == thread.SourceInput { // an agent with checkpoints may need it again, as the same messages
		var err error
		if update, err = state.Coerce(update, newID); err != nil {
			return err
		}
		pending = []graph.StateUpdate{{Values: update, AsNode: node}}
	}
	patch, err := a.State.Values.Reduce(update, newID)
	if err != nil {
		return err
	}
	return a.checkpoint(patch, source, pending)
}

// checkpoint records a change of the state, and shows it to readers of values.
func (a *Attempt) checkpoint(patch state.Patch, source thread.Source, pending []graph.StateUpdate) error {
	if !patch.Empty() || a.State.Forks() || (a.agentHasCheckpoints() && len(pending) > 0) {
		put := a.State.Advance(a.Run.Ref.Ref, a.store.now(), thread.Change{Run: a.Run.Run, Graph: a.Run.Graph, Source: source, Patch: patch, Pending: pending})
		if err := a.addWrite(put); err != nil {
			return err
		}
		a.passed(source, patch)
	}
	if source == thread.SourceInput && (a.agentHasCheckpoints() || !a.State.At.Folded) {
		a.unshown = true
		return nil
	}
	a.showValues()
	return nil
}

// reveal emits a values event with the run's input. It does nothing for agents that keep
// checkpoints: their first checkpoint contains the input. The first event of an agent that is new
// to the thread shows whether it keeps checkpoints.
func (a *Attempt) reveal() {
	if a.unshown && !a.agentHasCheckpoints() {
		a.showValues()
	}
}

// passed notes that the state has a new checkpoint.
func (a *Attempt) passed(source thread.Source, patch state.Patch) {
	a.Run.Checkpoint = a.State.At.Number
	if source == thread.SourceLoop {
		a.stepped, a.Run.Idle = true, 0
	}
	a.closeMessages(source == thread.SourceLoop && patch.Touches(state.Messages))
}

// Ask shows the questions of a graph that pauses. The questions are an object. Ask shows them
// in both places where clients look for them: as an update, and beside the values.
func (a *Attempt) Ask(questions json.RawMessage) {
	a.reveal()
	a.append(Event{Name: EventUpdates, Data: questions})
	a.append(Event{Name: EventValues, Checkpoint: a.State.At.Number, Data: questions})
}

func (a *Attempt) showValues() {
	a.append(Event{Name: EventValues, Checkpoint: a.State.At.Number})
	a.shown, a.unshown = a.State.Values.Clone(), false
}

// WatchLoss wakes the worker when its run may have been taken from it. Taking a run changes the
// thread's lock; the worker's own flushes do not. If another worker has claimed the same run, the
// next write of this worker fails.
func (a *Attempt) WatchLoss() table.Watcher { return a.store.table.Watch(a.Run.Ref.Ref.Key()) }

// CheckOwned returns ErrFenced if the worker no longer owns the attempt.
func (a *Attempt) CheckOwned(ctx context.Context) error {
	item, err := a.store.table.Get(ctx, a.Run.Key())
	if errors.Is(err, table.ErrNotFound) {
		return ErrFenced
	}
	if err != nil {
		return fmt.Errorf("get run: %w", err)
	}
	if Status(item.Text(attrStatus)) != Running || item.Int(attrAttempt) != a.Run.Attempt || item.Int(attrHanded) == a.Run.Attempt {
		return ErrFenced
	}
	return nil
}
