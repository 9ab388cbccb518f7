package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Outcome says how an attempt ended its run.
type Outcome struct {
	// Status is Success, Error or Timeout.
	Status Status
	// Failure says why a run did not succeed.
	Failure *Failure
	// ByAgent says that the failure is the agent's own: no output that the agent has shown in
	// the failed steps is kept.
	ByAgent bool
	// Interrupts are the questions of a graph that paused: a JSON object by task id, nil if
	// the graph did not pause.
	Interrupts json.RawMessage
}

// Finish ends the run, makes everything since the last flush durable, and hands the thread to
// the next queued run, which it dispatches. ErrFenced means that the run was taken from this
// attempt.
func (a *Attempt) Finish(ctx context.Context, outcome Outcome) error {
	return a.finish(ctx, outcome, false)
}

// finish is Finish. If it is lossy, leftovers that the state cannot hold are not kept.
func (a *Attempt) finish(ctx context.Context, outcome Outcome, lossy bool) error {
	if a.unsure != nil {
		return a.unsure
	}
	last := a.draft
	if err := last.foldOutcome(ctx, &outcome, lossy); err != nil {
		return err
	}
	now := a.store.Now()
	own := a.endWrites(now, &last, outcome)
	next, err := a.commitEnd(ctx, now, last, own, outcome)
	if err != nil {
		return err
	}
	last.Run.Status = outcome.Status
	if a.draft = last; next == nil {
		return nil
	}
	return a.store.Dispatch(ctx, *next)
}

// foldOutcome adds the results of the run's end to the state and to the events: the leftovers,
// the last values, the questions of the graph and the failure. If lossy, it drops leftovers that
// the state cannot hold.
func (d *draft) foldOutcome(ctx context.Context, outcome *Outcome, lossy bool) error {
	if outcome.ByAgent {
		d.forget(everyMessage)
	}
	if d.leavesSomething(*outcome) {
		err := d.try(func(d *draft) error { return d.keepLeftovers(ctx) })
		if lossy && isTooLarge(err) {
			err = nil
		}
		if err != nil {
			return err
		}
	}
	if d.unshown {
		d.showValues()
	}
	outcome.Interrupts = d.questions(*outcome)
	if outcome.Failure != nil {
		d.append(Event{Name: EventError, Data: record.Encode(outcome.Failure)})
	}
	return nil
}

// endWrites returns the writes that end the run, and the calls that follow the commit. It
// empties the buffers of the last draft.
func (a *Attempt) endWrites(now time.Time, last *draft, outcome Outcome) (o record.Outbox) {
	set := table.Attrs{attrStatus: string(outcome.Status)}
	if outcome.Failure != nil {
		set[attrFailure] = string(record.Encode(outcome.Failure))
	}
	if outcome.Interrupts != nil {
		set[attrInterrupts] = string(outcome.Interrupts)
	}
	last.forget(everyMessage)
	last.Run.UncheckpointedFrom = 0
	events := last.events
	writes := last.takeUnflushed(now)
	if last.Run.CheckpointRewritten {
		writes = last.dropOriginal(writes)
	}
	o.AddOr(last.move(now, set, a.store.endedEntry(last.Run, now), a.fence), record.Always(ErrFenced))
	for _, write := range writes {
		o.AddOr(write, a.fencedIfDelayed)
	}
	ended := last.Run
	ended.Status, ended.Failure, ended.Interrupts, ended.Updated = outcome.Status, outcome.Failure, outcome.Interrupts, now
	o.Join(a.store.notifyEnd(ended, last.Log.Values, now))
	a.store.Threads.Remember(last.Log) // before the commit, which wakes the readers of the state
	o.Then(func(context.Context) { a.store.recentEvents.remember(a.Run.Ref, events, now) })
	o.Join(a.store.releasePermit(last.Run))
	return o
}

// dropOriginal removes from the writes the copy of a checkpoint as it was before the run, or
// adds the write that erases the stored copy.
func (d *draft) dropOriginal(writes []table.Write) []table.Write {
	key := originalKey(d.Run.Ref)
	kept := slices.DeleteFunc(slices.Clone(writes), func(w table.Write) bool { return w.Target() == key })
	if len(kept) < len(writes) {
		return kept
	}
	return append(writes, table.Delete{Key: key})
}

// endedEntry returns the index entry of a run that has ended: no entry, unless the run's thread is
// removed with the run.
func (s *Store) endedEntry(run Run, now time.Time) map[table.Index]table.Key {
	if !run.Temporary {
		return noLease()
	}
	return map[table.Index]table.Key{table.ByDue: keys.Leases.At(run.Run, now.Add(linger))}
}

// leavesSomething reports whether the state may lack something that the run has taken or
// shown. This is so in three cases: the run's end was not caused by the agent; the agent has
// failed before any task took the input; or an agent that keeps no checkpoints answered on a
// thread of an agent that keeps checkpoints.
func (d *draft) leavesSomething(outcome Outcome) bool {
	if outcome.ByAgent && inputNotStepped(d.Log.State, d.Run) {
		return !slices.ContainsFunc(thread.TasksOf(d.Log.At.Tasks), func(task thread.Task) bool { return task.Error != nil })
	}
	return (outcome.Failure != nil && !outcome.ByAgent) || (d.Run.UncheckpointedFrom != 0 && !d.hasCheckpointed())
}

// Fail ends a run that no worker can complete. The output that the run had shown stays in the
// state; the run's input stays, too, if the run never started. Fail does nothing for a run that
// needs no worker.
func (s *Store) Fail(ctx context.Context, ref Ref, failure Failure) error {
	return s.giveUp(ctx, ref, Outcome{Status: Error, Failure: &failure})
}

// TimeOut ends a run that takes too long, as Fail does.
func (s *Store) TimeOut(ctx context.Context, ref Ref, failure Failure) error {
	return s.giveUp(ctx, ref, Outcome{Status: Timeout, Failure: &failure})
}

func (s *Store) giveUp(ctx context.Context, ref Ref, outcome Outcome) error {
	_, err := retryFenced(ctx, func(ctx context.Context) (*Attempt, error) {
		a, err := s.loadAttempt(ctx, ref)
		if err != nil {
			return nil, err
		}
		hasInput, err := s.hasInput(ctx, a.Run)
		if hasInput {
			err = a.try(func(d *draft) (err error) {
				if d.Log, _, err = s.branch(ctx, d.Run, d.Log); err != nil {
					return err
				}
				return d.foldAs(d.Run.Input.JSON(), thread.SourceInput, nodeInput)
			})
		}
		// An input that the state cannot hold stays with its run only.
		if err != nil && !isTooLarge(err) {
			return nil, err
		}
		return nil, a.finish(ctx, outcome, true)
	})
	if errors.Is(err, ErrNothingToDo) {
		return nil
	}
	return err
}

// commitEnd writes the end of a run together with the lock of its thread, which passes to the next
// queued run. It returns the next run, nil if there is no such run. The first try uses the lock
// that was read when the attempt began, because other requests rarely change the lock meanwhile.
func (a *Attempt) commitEnd(ctx context.Context, now time.Time, last draft, own record.Outbox, outcome Outcome) (*Run, error) {
	s := a.store
	return decideOn(ctx, s, a.thread, func(ctx context.Context, t thread.Thread) (_ *Run, o record.Outbox, err error) {
		if t.Lock.Run != a.Run.Run {
			return nil, o, ErrFenced
		}
		q, err := s.queued(ctx, t)
		if err != nil {
			return nil, o, err
		}
		change := t.ChangeLock(now)
		t.MarkSealed(&change, a.Run.Run, last.Run.Position, last.Log.At.Number, q.lastUnsealed != "")
		passed := s.passLock(t, &change, q.next, thread.IdleView{
			Status: threadStatus(outcome), Interrupts: outcome.Interrupts, Run: a.Run.Run,
		})
		o.Join(own)
		o.Join(s.notifyQuestions(t, outcome.Interrupts))
		o.AddOr(change, a.fencedIfDelayed)
		o.Add(passed...)
		o.Join(s.sealPassed(t.Ref, q, now))
		return q.next, o, nil
	})
}

// fencedIfDelayed refuses the end of a delayed run that never started: another run may have gone
// first, and may have changed the state since this attempt read it (writeClaim).
func (a *Attempt) fencedIfDelayed(*table.Item) error {
	if a.Run.Attempt == 0 && !a.Run.Due.IsZero() {
		return ErrFenced
	}
	return nil
}

// queue describes the runs that wait behind a thread's active run.
type queue struct {
	// next is the oldest waiting run, nil if no run waits.
	next *Run
	// lastUnsealed is the newest cancelled run before next that must be sealed, "" if there is no
	// such run.
	lastUnsealed string
}

// sealPassed seals the cancelled runs that Finish has passed over, unless the worker of the next
// run does so. The newest of these runs has a lease until then, so that they are sealed in any
// case.
func (s *Store) sealPassed(ref thread.Ref, q queue, now time.Time) (o record.Outbox) {
	if q.lastUnsealed == "" || s.workerSeals(q.next) {
		return o
	}
	o.Add(table.Update{Key: Ref{Ref: ref, Run: q.lastUnsealed}.Key(), Index: s.leaseEntry(q.lastUnsealed, now), If: table.Present()})
	o.Then(func(ctx context.Context) { s.sealIfNeeded(ctx, ref, q.next) })
	return o
}

// queued finds the next run of a thread.
func (s *Store) queued(ctx context.Context, t thread.Thread) (q queue, err error) {
	if t.Lock.Last == t.Lock.Run {
		return q, nil
	}
	query := keys.RunsAfter(t.Workspace, t.Deployment, t.Thread, t.Lock.Run)
	query.Limit = 1
	// Cancelled runs are passed over, each once.
	for item, err := range table.Growing(ctx, s.Table, query) {
		if err != nil {
			return q, fmt.Errorf("query queued runs: %w", err)
		}
		run, err := decodeOn(t.Ref, item, t.Lock)
		if err != nil {
			return q, err
		}
		if run.Status == Pending {
			q.next = &run
			break
		}
		if !run.needsNoSeal() {
			q.lastUnsealed = run.Run
		}
	}
	return q, nil
}

// passLock completes a change of the lock. The change hands the thread to the next run, or if next
// is nil leaves the thread without a run. The thread shows the view then, or if the next run leaves
// nothing. passLock returns the other writes that belong to the change.
func (s *Store) passLock(t thread.Thread, change *table.Update, next *Run, view thread.IdleView) []table.Write {
	t.SetIdleView(change, view)
	if next == nil {
		t.SetIdle(change)
		return t.UncountRun()
	}
	t.SetActive(change, next.Run, next.Due)
	now := s.Now()
	promote := record.Change(next.Key(), now, nil, table.Equals(attrStatus, string(Pending)))
	promote.Index = s.leaseEntry(next.Run, later(now, next.Due))
	return []table.Write{promote}
}

func threadStatus(outcome Outcome) thread.Status {
	switch {
	case outcome.Status != Success:
		return thread.StatusError
	case outcome.Interrupts != nil:
		return thread.StatusInterrupted
	default:
		return thread.StatusIdle
	}
}
