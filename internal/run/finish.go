package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/state"
	"github.com/slipway-run/slipway/internal/table"
	"github.com/slipway-run/slipway/internal/thread"
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
	if outcome.Failure != nil {
		if err := a.keepPartials(ctx); err != nil {
			return err
		}
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
	a.Run.Open = 0
	own := append([]table.Write{a.change(now, set, noLease)}, a.waiting(now)...)
	next, err := a.release(ctx, now, own, outcome)
	if err != nil {
		return err
	}
	a.Run.Status = outcome.Status
	if next == "" {
		return nil
	}
	return a.store.Dispatch(ctx, Run{Ref: Ref{Ref: a.Run.Ref.Ref, Run: next}, Dispatches: 1})
}

// Fail ends a run that no worker can complete. What it had shown stays in the state, also its input when it never started. A run that needs
// no worker is left as it is.
func (s *Store) Fail(ctx context.Context, ref Ref, failure Failure) error {
	for range contention {
		a, err := s.take(ctx, ref)
		if errors.Is(err, ErrNothingToDo) {
			return nil
		}
		if err != nil {
			return err
		}
		if a.Run.Attempt == 0 && state.IsObject(a.Run.Input) {
			if err := a.fold(a.Run.Input, thread.SourceInput); err != nil {
				return err
			}
		}
		if err := a.Finish(ctx, Outcome{Status: Error, Failure: &failure}); !errors.Is(err, ErrFenced) {
			return err
		}
	}
	return fmt.Errorf("fail run %s: others kept changing it", ref.Run)
}

// keepPartials folds what a failed run had shown but not finished into the state. What this attempt has not flushed yet was never shown,
// but it is about to be.
func (a *Attempt) keepPartials(ctx context.Context) error {
	a.Run.Open = a.open()
	partials, err := a.store.partials(ctx, a.Run)
	if err != nil {
		return err
	}
	for _, event := range a.events {
		if event.Name == EventMessages {
			partials.Add(event.Data, a.Run.Attempt)
		}
	}
	partials.Close(a.State.Values)
	update := partials.Update()
	if update == nil {
		return nil
	}
	return a.fold(update, thread.SourceUpdate)
}

// release writes the end of a run together with the lock of its thread, which passes to the next queued run. It returns that run's id. It
// first supposes that nobody changed the lock since the run was taken up, which is the rule.
func (a *Attempt) release(ctx context.Context, now time.Time, own []table.Write, outcome Outcome) (next string, err error) {
	s, t := a.store, a.thread
	for range contention {
		if t.Lock.Run != a.Run.Run {
			return "", ErrFenced
		}
		if t.Lock.Last != a.Run.Run {
			if next, err = s.nextQueued(ctx, a.Run.Ref); err != nil {
				return "", err
			}
		}
		err = s.table.Transact(ctx, slices.Concat(own, s.passOn(t, a.Run, next, a.State.At.Number, now, outcome))...)
		failed, ok := errors.AsType[*table.ConditionFailed](err)
		switch {
		case err == nil:
			return next, nil
		case !ok:
			return "", fmt.Errorf("finish run: %w", err)
		case failed.Write == 0:
			return "", ErrFenced
		}
		if t, err = s.threads.Get(ctx, a.Run.Ref.Ref); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("finish run %s: others kept changing its thread", a.Run.Run)
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

// passOn returns the writes that hand the thread's lock from a finished run to the next, or to nobody when next is "".
func (s *Store) passOn(t thread.Thread, run Run, next string, checkpoint int64, now time.Time, outcome Outcome) []table.Write {
	lock := thread.PauseAttrs(outcome.Interrupts)
	lock[thread.AttrStatus] = string(threadStatus(outcome))
	lock[thread.AttrBusy] = next != ""
	lock[thread.AttrSealed], lock[thread.AttrPosition], lock[thread.AttrCheckpoint] = run.Run, run.Position, checkpoint
	if next == "" {
		return []table.Write{t.ChangeLock(now, lock)}
	}
	lock[thread.AttrRun], lock[thread.AttrStatus] = next, string(thread.StatusBusy)
	promote := record.Change(Ref{Ref: t.Ref, Run: next}.Key(), now, nil, table.Equals(attrStatus, string(Pending)))
	promote.Index = s.leaseEntry(next, now)
	return []table.Write{t.ChangeLock(now, lock), promote}
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
