package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Outcome is how an attempt ended its run.
type Outcome struct {
	// Status is Success, Error or Timeout.
	Status Status
	// Failure says why a run did not succeed.
	Failure *Failure
	// Interrupts are the questions of a graph that paused: a JSON object by task id, nil when it did not.
	Interrupts json.RawMessage
}

// Finish ends the run, makes everything since the last flush durable, and hands the thread to the next queued run, which it dispatches.
// ErrFenced means that the run was taken from this attempt.
func (a *Attempt) Finish(ctx context.Context, outcome Outcome) error {
	if a.unsure != nil {
		return a.unsure
	}
	if a.unfinished(outcome) && !a.lossy {
		if err := a.keepLeftovers(ctx); err != nil {
			return err
		}
	}
	if a.unshown {
		a.showValues()
	}
	outcome.Interrupts = a.asked(outcome)
	if outcome.Failure != nil {
		a.append(Event{Name: EventError, Data: record.Encode(outcome.Failure)})
	}
	now := a.store.now()
	set := table.Attrs{attrStatus: string(outcome.Status)}
	if outcome.Failure != nil {
		set[attrFailure] = string(record.Encode(outcome.Failure))
	}
	if outcome.Interrupts != nil {
		set[attrInterrupts] = string(outcome.Interrupts)
	}
	clear(a.opened)
	a.Run.Open, a.Run.Unfolded = 0, 0
	events := a.events
	own := append([]table.Write{a.change(now, set, a.store.over(a.Run, now))}, a.waiting(now)...)
	if a.Run.Amended {
		own = a.dropOriginal(own)
	}
	own = append(own, leave(a.Run)...)
	ended := a.Run
	ended.Status, ended.Failure, ended.Interrupts, ended.Updated = outcome.Status, outcome.Failure, outcome.Interrupts, now
	tell, told := a.store.tell(ended, a.State.Values, now)
	next, err := a.release(ctx, now, append(own, tell...), outcome)
	if err != nil {
		return err
	}
	told(ctx)
	a.store.tail.keep(a.Run.Ref, events, now)
	a.store.threads.Remember(a.Run.Ref.Ref, a.State)
	a.store.vacated(ctx, a.Run)
	a.Run.Status = outcome.Status
	if next == nil {
		return nil
	}
	return a.store.Dispatch(ctx, *next)
}

// dropOriginal takes out the write of a checkpoint as it was before the run, or erases it.
func (a *Attempt) dropOriginal(writes []table.Write) []table.Write {
	key := amended(a.Run.Ref)
	kept := slices.DeleteFunc(writes, func(w table.Write) bool { return w.Target() == key })
	if len(kept) < len(writes) {
		return kept
	}
	return append(writes, table.Delete{Key: key})
}

// over is where a run that has ended is looked for: nowhere, unless its thread goes with it.
func (s *Store) over(run Run, now time.Time) map[table.Index]table.Key {
	if !run.Temporary {
		return noLease
	}
	return map[table.Index]table.Key{table.ByDue: keys.Lease(run.Run, now.Add(s.linger))}
}

// unfinished reports whether what the run has shown may not be in the state: it failed, or an agent that keeps no checkpoints answered on a thread of one
// that does.
func (a *Attempt) unfinished(outcome Outcome) bool {
	return outcome.Failure != nil || (a.Run.Unfolded != 0 && !a.followed())
}

// Fail ends a run that no worker can complete. What it had shown stays in the state, also its input when it never started. A run that needs
// no worker is left as it is.
func (s *Store) Fail(ctx context.Context, ref Ref, failure Failure) error {
	return s.giveUp(ctx, ref, Outcome{Status: Error, Failure: &failure})
}

// TimeOut ends a run that takes too long, as Fail does.
func (s *Store) TimeOut(ctx context.Context, ref Ref, failure Failure) error {
	return s.giveUp(ctx, ref, Outcome{Status: Timeout, Failure: &failure})
}

func (s *Store) giveUp(ctx context.Context, ref Ref, outcome Outcome) error {
	lossy := false
	for range contention {
		a, err := s.take(ctx, ref)
		if errors.Is(err, ErrNothingToDo) {
			return nil
		}
		if err != nil {
			return err
		}
		a.lossy = lossy
		if a.Run.Attempt == 0 && state.IsObject(a.Run.Input) && !lossy {
			err = a.foldAs(a.Run.Input, thread.SourceInput, nodeInput)
		}
		if err == nil {
			err = a.Finish(ctx, outcome)
		}
		if _, full := errors.AsType[*TooLargeError](err); full && !lossy {
			lossy = true // what the state cannot hold stays with its run only
		} else if !errors.Is(err, ErrFenced) {
			return err
		}
	}
	return fmt.Errorf("end run %s: others kept changing it", ref.Run)
}

// release writes the end of a run together with the lock of its thread, which passes to the next queued run. It returns that run's id. It
// first supposes that nobody changed the lock since the run was taken up, which is the rule.
func (a *Attempt) release(ctx context.Context, now time.Time, own []table.Write, outcome Outcome) (*Run, error) {
	s, t := a.store, a.thread
	for range contention {
		if t.Lock.Run != a.Run.Run {
			return nil, ErrFenced
		}
		q, err := s.queued(ctx, t)
		if err != nil {
			return nil, err
		}
		change := t.ChangeLock(now, table.Attrs{
			thread.AttrSealed: a.Run.Run, thread.AttrPosition: a.Run.Position, thread.AttrCheckpoint: a.State.At.Number, thread.AttrUnsealed: q.passed,
		})
		pass := s.passOn(t, &change, q.next, threadStatus(outcome), outcome.Interrupts)
		err = s.table.Transact(ctx, slices.Concat(own, pass)...)
		failed, ok := errors.AsType[*table.ConditionFailed](err)
		switch {
		case err == nil:
			return q.next, nil
		case !ok:
			return nil, fmt.Errorf("finish run: %w", err)
		case failed.Write == 0 || (a.Run.Attempt == 0 && !a.Run.Due.IsZero()):
			return nil, ErrFenced // by another worker, or it has given way to another run meanwhile (begin)
		}
		if t, err = s.threads.Get(ctx, a.Run.Ref.Ref); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("finish run %s: others kept changing its thread", a.Run.Run)
}

// queue is what waits behind a thread's active run.
type queue struct {
	// next is the oldest run that waits, nil when none does.
	next *Run
	// passed says that there are runs before it that were cancelled.
	passed bool
}

// queuePage is how many runs are looked at for the next one; those that were cancelled are passed over, each once.
const queuePage = 16

// queued looks for the next run of a thread.
func (s *Store) queued(ctx context.Context, t thread.Thread) (q queue, err error) {
	if t.Lock.Last == t.Lock.Run {
		return q, nil
	}
	query := keys.RunsAfter(t.Workspace, t.Deployment, t.Thread, t.Lock.Run)
	for query.Limit = 1; ; query.Limit = queuePage {
		page, err := s.table.Query(ctx, query)
		if err != nil {
			return q, fmt.Errorf("query queued runs: %w", err)
		}
		for _, item := range page.Items {
			run, err := decode(Ref{Ref: t.Ref, Run: keys.RunID(item.Key)}, item, t.Lock)
			if err != nil {
				return q, err
			}
			if run.Status == Pending {
				q.next = &run
				return q, nil
			}
			q.passed = true
		}
		if page.Cursor == "" {
			return q, nil
		}
		query.Cursor = page.Cursor
	}
}

// passOn completes a change of the lock that hands the thread to the next run, or to nobody when that is nil, and leaves it with a status and with what a
// graph asks. It returns it with what else is to be written.
func (s *Store) passOn(t thread.Thread, change *table.Update, next *Run, status thread.Status, interrupts json.RawMessage) []table.Write {
	if next == nil {
		t.Leave(change, status)
		t.Ask(change, interrupts)
		return []table.Write{*change}
	}
	t.Occupy(change, next.Run, next.Due)
	t.Ask(change, nil) // the next run passes over the questions
	now := s.now()
	promote := record.Change(next.Key(), now, nil, table.Equals(attrStatus, string(Pending)))
	promote.Index = s.leaseEntry(next.Run, later(now, next.Due))
	return []table.Write{*change, promote}
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
