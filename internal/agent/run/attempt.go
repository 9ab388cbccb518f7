package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// MaxAttempts is how many attempts at a run may fail before the run ends as Error. An attempt fails
// if it ends without a handover: its worker died, or the agent was lost. An error that the agent
// reports ends the run at once.
const MaxAttempts = 3

// MaxIdleSlices is how many slices in a row may pass without a checkpoint of a step before the run
// ends as Timeout: the next slice would start at the same checkpoint again. HandOver says what a
// slice is.
const MaxIdleSlices = 3

// ErrFenced is returned to a worker that no longer owns the run. The worker must stop: its later
// writes cannot succeed.
var ErrFenced = errors.New("the run was taken from this worker")

// ErrNothingToDo is returned by Claim for a run that needs no worker: the run has ended, was
// superseded or removed, or is not the thread's active run.
var ErrNothingToDo = errors.New("the run needs no worker")

// errRemoved is ErrNothingToDo for a run that does not exist any more.
var errRemoved = fmt.Errorf("%w: it was removed", ErrNothingToDo)

// ErrAttemptsExhausted is returned by Claim for a run with MaxAttempts failed attempts.
var ErrAttemptsExhausted = errors.New("the run has no attempt left")

// ErrNoProgress is returned by Claim for a run without a checkpoint of a step in MaxIdleSlices
// slices.
var ErrNoProgress = errors.New("the run makes no progress")

// ErrCheckpointGone is returned by Claim for a run that forks from a checkpoint that was removed
// after the run was created.
var ErrCheckpointGone = errors.New("the checkpoint of the run is gone")

// NotDueError is returned by Claim for a delayed run whose due time has not come.
type NotDueError struct{ Due time.Time }

func (e *NotDueError) Error() string { return "the run is not due before " + clock.Format(e.Due) }

// Attempt is the right to write a run under a fence. Claim takes the next attempt number; Fail and
// TimeOut end the run as its present attempt. An Attempt belongs to one goroutine. It works in a
// loop: the agent's events change the draft (Update, Values, Show, Checkpoint, ...), and Flush
// commits the events and writes of the draft. Finish or HandOver makes the last commit.
type Attempt struct {
	draft

	// thread is the thread as it was read when the attempt began.
	thread thread.Thread
	// Pending are the updates that the agent's own checkpoint lacked when the attempt began. The
	// agent applies them itself.
	Pending []graph.StateUpdate
	renewed time.Time
	// fence is the condition of the next write.
	fence table.Cond
	// unsure is the error of a write that may have been applied or not. No write can follow
	// it: the caller must read the run again to go on.
	unsure error
}

// Claim makes the caller the owner of the run's next attempt and fences off the previous attempt.
// If the lock says Unsealed, Claim first seals the thread. The first attempt also adds the run's
// input to the state and takes one of the deployment's permits (permit.go) in the same transaction;
// permits is 0 if there is no limit. Claim returns ErrWaitsForPermit if no permit is free, or if
// another run waits for a permit already.
func (s *Store) Claim(ctx context.Context, ref Ref, permits int) (*Attempt, error) {
	a, err := retryFenced(ctx, func(ctx context.Context) (*Attempt, error) {
		a, err := s.loadAttempt(ctx, ref)
		if err == nil {
			err = a.countFailures()
		}
		if err == nil {
			err = a.takePermit(ctx, permits)
		}
		if err == nil {
			err = a.loadAgentState(ctx)
		}
		if err == nil {
			err = a.writeClaim(ctx)
		}
		return a, err
	})
	if errors.Is(err, errRemoved) {
		err = cmp.Or(s.freeDeleted(ctx, ref, permits), ErrNothingToDo)
	}
	return a, err
}

// retryFenced calls work, which commits its own writes, again each time another worker or request
// has changed the run meanwhile.
func retryFenced(ctx context.Context, work func(context.Context) (*Attempt, error)) (*Attempt, error) {
	return record.Retry(ctx, func(ctx context.Context) (*Attempt, error) {
		a, err := work(ctx)
		if errors.Is(err, ErrFenced) {
			err = record.ErrLost
		}
		return a, err
	})
}

// countFailures counts the previous attempt as a failure unless it was handed over, and returns an
// error if the run may not have another attempt.
func (a *Attempt) countFailures() error {
	if a.Run.Attempt > a.Run.LastHandover {
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

// loadAttempt reads the thread and its active run, seals the thread if the lock says Unsealed, and
// then reads the thread's state. The attempt that it returns has the run's current number, 0 before
// the first claim. Its fence holds until an attribute of the fence changes.
func (s *Store) loadAttempt(ctx context.Context, ref Ref) (*Attempt, error) {
	t, run, err := s.getWithThread(ctx, ref)
	if fault.Is(err, fault.NotFound) {
		return nil, errRemoved
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
	var sealedLog *thread.Log
	if t.Lock.Unsealed {
		if t, sealedLog, err = s.seal(ctx, t); err != nil {
			return nil, err
		}
	}
	if run.Attempt == 0 && run.Due.After(s.Now()) {
		return nil, &NotDueError{Due: run.Due}
	}
	if sealedLog != nil {
		return s.attempt(t, run, *sealedLog), nil
	}
	st := thread.Empty()
	if run.Attempt > 0 || t.Lock.Checkpoint >= 0 { // the first run of a thread needs no read
		if st, err = s.Threads.State(ctx, t.Ref); err != nil {
			return nil, err
		}
	}
	return s.attempt(t, run, thread.NewLog(t.Ref, st)), nil
}

// attempt returns the run's current attempt, built from the thread, run and log that were read.
func (s *Store) attempt(t thread.Thread, run Run, log thread.Log) *Attempt {
	a := &Attempt{draft: draft{store: s, Run: run, Log: log}, thread: t, fence: fence(run)}
	if run.Attempt == 0 {
		a.Run.Start, a.Run.Position, a.Run.CheckpointBefore = t.Lock.Position, t.Lock.Position, t.Lock.Checkpoint
	}
	if a.attemptFirst = a.Run.Position + 1; run.Attempt > run.LastHandover {
		a.Run.FirstsAfterLoss = append(slices.Clip(a.Run.FirstsAfterLoss), a.attemptFirst)
	}
	// If each earlier attempt wrote one event only ("metadata"), readers have not seen the run's
	// input yet.
	a.unshown = run.Attempt > 0 && run.Position-run.Start == run.Attempt && a.Log.At.Number >= 0
	a.Run.Checkpoint = a.Log.At.Number
	return a
}

// loadAgentState loads the agent's pending updates and its own checkpoint. The first attempt of a
// run that forks from an earlier checkpoint loads the state of that checkpoint.
func (a *Attempt) loadAgentState(ctx context.Context) (err error) {
	threads := a.store.Threads
	if a.Log, a.Pending, err = a.store.branch(ctx, a.Run, a.Log); err == nil && a.Pending == nil {
		a.Pending, err = threads.Pending(ctx, a.Run.Ref.Ref, a.Log.At, a.Run.Run)
	}
	if err != nil {
		return err
	}
	a.Log, err = threads.ReadFrame(ctx, a.Log.Naming(a.Run.Fork.subgraphs()))
	return err
}

// branch returns the log of the branch that a run begins behind the end of its thread's log, and
// the updates that the agent's checkpoint lacks there. If the run begins no branch, it returns the
// log as it is, and nil.
func (s *Store) branch(ctx context.Context, run Run, end thread.Log) (thread.Log, []graph.StateUpdate, error) {
	fork := run.Fork
	if run.Attempt > 0 || fork == nil || (fork.Number == end.At.Number && fork.isAt(end.State)) {
		return end, nil, nil
	}
	st, err := s.base(ctx, run)
	if err != nil {
		return end, nil, err
	}
	pending, err := s.Threads.Pending(ctx, run.Ref.Ref, st.At, run.Run)
	return thread.NewLog(run.Ref.Ref, st).Fork(end.At.Number, pending), pending, err
}

// subgraphs returns the ids of the checkpoints of subgraphs that the client has named, by
// namespace.
func (f *Fork) subgraphs() map[string]string {
	var ids map[string]string
	if f == nil || json.Unmarshal(f.Map, &ids) != nil {
		return nil
	}
	return ids
}

// isAt reports whether a state is that of the checkpoint.
func (f *Fork) isAt(st thread.State) bool { return f.Number < 0 || st.At.ID == f.ID }

// base returns the state from which a run forks, or ErrCheckpointGone: another run may have been
// rolled back, or the thread pruned, while the run waited.
func (s *Store) base(ctx context.Context, run Run) (thread.State, error) {
	st, err := s.Threads.StateAt(ctx, run.Ref.Ref, run.Fork.Number)
	if err == nil && !run.Fork.isAt(st) {
		err = ErrCheckpointGone
	}
	return st, err
}

// hasInput reports whether a run has never begun and has an input that can go into the state. The
// input of a fork whose checkpoint is gone belongs to no state.
func (s *Store) hasInput(ctx context.Context, run Run) (bool, error) {
	hasInput := run.Attempt == 0 && run.GraphInput().isObject()
	if !hasInput || run.Fork == nil {
		return hasInput, nil
	}
	_, err := s.base(ctx, run)
	if errors.Is(err, ErrCheckpointGone) {
		return false, nil
	}
	return err == nil, err
}

// fence is the condition that the stored run still has the given status, attempt number, position
// and last handover.
func fence(run Run) table.Cond {
	return table.All(
		table.Equals(attrStatus, string(run.Status)),
		table.Equals(attrAttempt, run.Attempt),
		table.Equals(attrPosition, run.Position),
		table.Equals(attrLastHandover, run.LastHandover),
	)
}

// writeClaim writes the claim. A run that is not delayed stops being the active run only by a write
// to its own item, which the fence detects. A delayed run can stop being active, and become active
// again after another run wrote to the thread, so its first claim also requires the lock's epoch
// that was read.
func (a *Attempt) writeClaim(ctx context.Context) error {
	now, next := a.store.Now(), a.draft
	next.Run.Attempt++
	next.Run.Status = Running
	next.append(Event{Name: EventMetadata, Data: record.Encode(map[string]any{"run_id": next.Run.Run, "attempt": next.Run.Attempt})})
	set := table.Attrs{attrStatus: string(Running), attrAttempt: next.Run.Attempt, attrLastHandover: next.Run.LastHandover, attrFailures: next.Run.Failures}
	if next.Run.Attempt == 1 {
		next.Run.Started = now
		next.Run.AgentCheckpoint, next.Run.AgentItems = next.Log.AgentEnd()
		if err := next.foldInput(); err != nil {
			return err
		}
		if !next.Run.Due.IsZero() {
			next.writes = append(next.writes, a.thread.CheckLock())
		}
		set[attrStarted], set[attrAgentCheckpoint], set[attrAgentItems] = clock.Format(now), next.Run.AgentCheckpoint, next.Run.AgentItems
		if next.Run.Permit != 0 {
			set[attrPermit] = next.Run.Permit
		}
	}
	if !next.Run.Absent.IsZero() {
		next.Run.Started, next.Run.Absent = next.Run.Started.Add(now.Sub(next.Run.Absent)), time.Time{}
		set[attrStarted], set[attrAbsent] = clock.Format(next.Run.Started), ""
	}
	a.renewed = now
	err := a.write(ctx, record.Commit, pendingWrite{next, now, set, a.store.workEntry(next.Run.Run, now)})
	if err == nil && a.Run.Attempt == 1 && a.store.Observer != nil {
		a.store.Observer.Started(ctx, a.Run, now.Sub(later(a.Run.Created, a.Run.Due)))
	}
	return err
}

// Update shows the updates of nodes and folds them into the state in their order. It does not
// fold them if the state comes from the agent's own checkpoints.
func (a *Attempt) Update(name string, data json.RawMessage) error {
	return a.try(func(d *draft) error { return d.update(name, data) })
}

func (d *draft) update(name string, data json.RawMessage) error {
	d.reveal()
	position := d.append(Event{Name: name, Data: data})
	updates, err := nodeUpdates(data)
	if err != nil {
		return fmt.Errorf("updates are not an object by node: %.40s", data)
	}
	d.finishNodes(updates)
	if d.agentHasCheckpoints() {
		if d.Run.UncheckpointedFrom == 0 {
			d.Run.UncheckpointedFrom = position - 1
		}
		for _, update := range updates {
			d.updates = append(d.updates, update.Value)
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
		if err := d.foldAs(update.Value, thread.SourceLoop, update.Name); err != nil {
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
	return a.try(func(d *draft) error {
		d.reveal()
		values, patch, err := d.Log.Values.Replace(data)
		if err != nil {
			return err
		}
		if !d.reportsUnfinished { // the values are the whole state
			d.forget(everyMessage)
		}
		return d.checkpoint(thread.Change{Source: thread.SourceLoop, Values: values, Patch: patch})
	})
}

// Show takes an event of any other kind.
func (a *Attempt) Show(name string, data json.RawMessage) {
	if !ofExecution(name) {
		a.reveal()
	}
	position := a.append(Event{Name: name, Data: data})
	if name == EventMessages {
		a.beginMessage(data, position-1)
	}
}

// ShowQuestions shows the questions of a graph that pauses in both places where clients look for
// them: as an update, and beside the values. A pause without questions is only an update.
func (a *Attempt) ShowQuestions(questions []json.RawMessage) {
	a.reveal()
	shown := record.Encode(map[string]any{MemberQuestions: questions})
	a.append(Event{Name: EventUpdates, Data: shown})
	if len(questions) > 0 {
		a.append(Event{Name: EventValues, Checkpoint: a.Log.At.Number, Data: shown})
	}
}

// WatchLoss wakes the worker after each change of the thread's lock, which an interrupt or a cancel
// makes and the worker's own flushes do not. Another worker's Claim of the same run does not change
// the lock: the next write of this worker fails.
func (a *Attempt) WatchLoss() table.Watcher { return a.store.Table.Watch(a.Run.Ref.Ref.Key()) }

// CheckOwned returns ErrFenced if the worker no longer owns the attempt.
func (a *Attempt) CheckOwned(ctx context.Context) error {
	item, err := record.Get(ctx, a.store.Table, "run", a.Run.Key(), ErrFenced)
	if err != nil {
		return err
	}
	if Status(item.Text(attrStatus)) != Running || item.Int(attrAttempt) != a.Run.Attempt || item.Int(attrLastHandover) == a.Run.Attempt {
		return ErrFenced
	}
	return nil
}

// RevertInput makes the state of the thread as it was before this run, for a run whose input the
// agent refuses because of what it holds (400, 413, 422): if the input stayed, the agent would get
// it with each later run and refuse each of them. RevertInput does nothing if the agent has taken
// the input in an earlier attempt.
func (a *Attempt) RevertInput(ctx context.Context) error {
	at := a.Log.At
	if at.Own() || at.Source != thread.SourceInput || at.Run != a.Run.Run {
		return nil
	}
	threads, ref := a.store.Threads, a.Run.Ref.Ref
	before, err := threads.StateAt(ctx, ref, a.Run.CheckpointBefore)
	if err != nil {
		return err
	}
	pending, err := threads.Pending(ctx, ref, before.At, "")
	if err != nil {
		return err
	}
	log, err := threads.ReadFrame(ctx, thread.NewLog(ref, before).Fork(at.Number, pending))
	if err != nil {
		return err
	}
	return a.try(func(d *draft) error {
		d.Log, d.unshown = log, false
		return d.checkpoint(thread.Change{Source: thread.SourceFork, Values: log.Values})
	})
}
