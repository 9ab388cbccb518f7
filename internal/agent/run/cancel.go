package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/match"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Action says how a cancel ends a run.
type Action string

const (
	// ActionInterrupt ends the run as Interrupted. The state keeps the output that the run has
	// shown, and its input. If no worker had claimed the run, the state does not get its
	// input, unless the client only lost its connection.
	ActionInterrupt Action = "interrupt"
	// ActionRollback removes the run with everything that it wrote.
	ActionRollback Action = "rollback"
)

// status is the status that the action gives to a run.
func (a Action) status() Status {
	if a == ActionRollback {
		return Removed
	}
	return Interrupted
}

// Reason says in words why a run was ended before it completed. It is "" for a run that
// completed, and for a run that was ended early while no reason is stored yet.
type Reason string

const (
	byRequest Reason = "The run was cancelled."
	// Clients know a run whose input is in another run by the beginning of this reason.
	byTaking     Reason = "taken: Another run took the input of the run."
	byDisconnect Reason = "The run was cancelled, because the connection of the client that waited for it was lost."
)

// byClient reports whether the run was cancelled alone or with its thread. The cancel has then said
// how the thread rests after the run.
func (r Reason) byClient() bool { return r == byRequest || r == byTaking || r == byDisconnect }

func supersededBy(run string) Reason {
	return Reason("The run was superseded by run " + run + ", whose multitask_strategy is interrupt.")
}

// NothingToCancel returns the fault of a cancel that finds no unfinished run.
func NothingToCancel() error {
	return fault.New(fault.NotFound, "No matching runs to cancel. Those that have ended, or were cancelled before, stay as they are.")
}

// Cancel ends a run that has not ended: the first cancel wins, and the run's worker can write
// nothing more. The next queued run begins. Cancel returns NothingToCancel for a run that has
// ended, and a fault.NotFound for an unknown run.
func (s *Store) Cancel(ctx context.Context, ref Ref, action Action) error {
	return s.cancel(ctx, ref, cancellation{action: action, why: byRequest}, Pending, Running)
}

// CancelTaken cancels a run whose input a client has given to another run.
func (s *Store) CancelTaken(ctx context.Context, ref Ref) error {
	return s.cancel(ctx, ref, cancellation{action: ActionInterrupt, why: byTaking}, Pending, Running)
}

// CancelOnDisconnect cancels a run whose client has disconnected. The state keeps the output
// that the run has shown.
func (s *Store) CancelOnDisconnect(ctx context.Context, ref Ref) error {
	return s.cancel(ctx, ref, cancellation{action: ActionInterrupt, why: byDisconnect}, Pending, Running)
}

// cancellation says how a run is cancelled, and why.
type cancellation struct {
	action Action
	why    Reason
	// also is written in the transaction that cancels the run.
	also record.Outbox
}

// cancel is Cancel for a run that has one of the given statuses.
func (s *Store) cancel(ctx context.Context, ref Ref, c cancellation, in ...Status) error {
	return record.Decide(ctx, s.Table, func(ctx context.Context) (o record.Outbox, err error) {
		t, run, err := s.getWithThread(ctx, ref)
		if err != nil {
			return o, missing(ref, err)
		}
		if !slices.Contains(in, run.Status) {
			return o, NothingToCancel()
		}
		if c.action == ActionRollback && t.Lock.RemoveFrom != "" {
			return o, s.sealAndRetry(ctx, ref.Ref)
		}
		if run.Run == t.Lock.Run {
			o, err = s.cancelActive(ctx, t, run, c.action, c.why)
		} else {
			o, err = s.cancelQueued(ctx, t, run, c.action, c.why)
		}
		o.Join(c.also)
		return o, err
	})
}

// sealAndRetry seals the leftovers of earlier runs. It returns record.ErrLost, so that the
// caller reads the thread again.
func (s *Store) sealAndRetry(ctx context.Context, ref thread.Ref) error {
	if _, err := s.Seal(ctx, ref); err != nil {
		return err
	}
	return record.ErrLost
}

// cancelActive ends the thread's active run and hands the thread to the next queued run.
func (s *Store) cancelActive(ctx context.Context, t thread.Thread, run Run, action Action, why Reason) (o record.Outbox, err error) {
	q, err := s.queued(ctx, t)
	if err != nil {
		return o, err
	}
	change := t.ChangeLock(s.Now())
	if action == ActionRollback {
		t.MarkRemoved(&change, run.Run, run.Run)
	}
	return s.endActive(ctx, t, run, action, why, change, q.next)
}

// endActive ends the thread's active run. It completes a change of the lock, which passes to the
// next run, nil if no run is queued.
func (s *Store) endActive(
	ctx context.Context, t thread.Thread, run Run, action Action, why Reason, change table.Update, next *Run,
) (o record.Outbox, err error) {
	view, err := s.idleViewAfter(ctx, t, run, action, why)
	if err != nil {
		return o, err
	}
	end := s.end(run.Ref, action.status(), why, s.Now())
	if run.Attempt == 0 {
		// A worker that claims the run meanwhile changes what the thread shows after the run.
		end.If = table.All(end.If, table.Equals(attrAttempt, int64(0)))
	}
	t.MarkUnsealed(&change)
	passed := s.passLock(t, &change, next, view)
	o.Add(end, change)
	o.Add(passed...)
	o.Join(s.notifyQuestions(t, view.Interrupts))
	o.Then(func(ctx context.Context) { s.cancelled(ctx, run, next) })
	return o, nil
}

// idleViewAfter returns what a thread shows when its active run was cancelled and no other run
// follows: what it showed before, if the run leaves nothing. Only Seal knows what the runs have
// left that this run has superseded.
func (s *Store) idleViewAfter(ctx context.Context, t thread.Thread, active Run, action Action, why Reason) (thread.IdleView, error) {
	if action == ActionInterrupt {
		if active.Attempt == 0 {
			if err := s.loadBulk(ctx, &active); err != nil {
				return thread.IdleView{}, err
			}
		}
		if view, leaves := active.idleView(why); leaves {
			return view, nil
		}
	}
	if t.Lock.Unsealed {
		return thread.IdleView{}, s.sealAndRetry(ctx, t.Ref)
	}
	return t.IdleView, nil
}

// idleView returns what a thread shows after a run that ended early for a reason. leaves is false
// if the run leaves nothing in the state: then no agent knows of the run, and the questions of the
// thread are open.
func (r Run) idleView(why Reason) (view thread.IdleView, leaves bool) {
	switch {
	case r.Attempt > 0:
		return thread.IdleView{Status: thread.StatusInterrupted, Run: r.Run}, true
	case r.withdrawn(why), !r.GraphInput().isObject():
		return thread.IdleView{}, false
	default:
		return thread.IdleView{Status: thread.StatusIdle, Run: r.Run}, true
	}
}

// withdrawn reports whether a run that ended for a reason was withdrawn: before a worker claimed
// it, its client cancelled it, or gave its input to another run. Such a run leaves nothing in the
// state. A run without an input, such as an answer to questions, and a run that Refuse has created,
// leave nothing either if no worker claimed them. If the client only lost its connection, the run
// is not withdrawn, and the state gets its input.
func (r Run) withdrawn(why Reason) bool {
	return r.Attempt == 0 && (why == byRequest || why == byTaking)
}

// needsNoSeal reports whether nothing of an ended run is left to seal: the run was refused, or it
// was withdrawn in the queue, and the notifications of its end were sent. Finish and Seal pass over
// such a run.
func (r Run) needsNoSeal() bool {
	return r.Refusal != nil || (r.EndNotified && r.withdrawn(r.CancelReason))
}

// cancelQueued ends a run that waits behind the active run, and notifies of its end at once. If the
// state gets its input, the run is sealed when the active run has ended, because the input follows
// what that run leaves.
func (s *Store) cancelQueued(ctx context.Context, t thread.Thread, run Run, action Action, why Reason) (o record.Outbox, err error) {
	now, waits := s.Now(), table.Equals(attrStatus, string(Pending))
	if action == ActionRollback {
		o.Add(s.deletes(run, waits)...)
		run.Status = Removed
		o.Join(s.notifyObserver(run))
	} else {
		run.Status, run.CancelReason, run.Updated = Interrupted, why, now
		end := record.Change(run.Key(), now, table.Attrs{attrStatus: string(Interrupted), attrCancelReason: string(why), attrEndNotified: true}, waits)
		if run.Temporary { // a run that needs no seal gets no entry when its turn would have come
			end.Index = s.endedEntry(run, now)
		}
		o.Add(end)
		notification, err := s.notifyQueuedEnd(ctx, t, run, now)
		if err != nil {
			return o, err
		}
		o.Join(notification)
	}
	o.Add(t.ChangeLock(now))
	o.Then(func(ctx context.Context) { s.cancelled(ctx, run, nil) })
	return o, nil
}

// notifyQueuedEnd is notifyEnd for a run that is cancelled while it waits. The message shows the
// state before the active run, which may work for hours.
func (s *Store) notifyQueuedEnd(ctx context.Context, t thread.Thread, run Run, now time.Time) (record.Outbox, error) {
	if run.Webhook == "" {
		return s.notifyObserver(run), nil
	}
	if t.Lock.Unsealed {
		return record.Outbox{}, s.sealAndRetry(ctx, t.Ref)
	}
	if err := s.loadBulk(ctx, &run); err != nil {
		return record.Outbox{}, err
	}
	st, err := s.Threads.StateAt(ctx, t.Ref, t.Lock.Checkpoint)
	return s.notifyEnd(run, st.Values, now), err
}

// cancelled does the work that follows a cancel. Rescue finds work that is left undone.
func (s *Store) cancelled(ctx context.Context, run Run, next *Run) {
	if !run.Due.IsZero() && run.Attempt == 0 {
		s.stopWorkflow(ctx, run, "the run was cancelled")
	}
	if next != nil {
		s.startWorkflow(ctx, *next)
	}
	s.sealIfNeeded(ctx, run.Ref.Ref, next)
}

// CancelThread ends all unfinished runs of a thread at once, however many there are, and reports
// whether there were any. If the action keeps the runs, the lock passes over them and stays at the
// last of them.
func (s *Store) CancelThread(ctx context.Context, ref thread.Ref, action Action) (bool, error) {
	return record.DecideValue(ctx, s.Table, func(ctx context.Context) (_ bool, o record.Outbox, err error) {
		t, err := s.Threads.Get(ctx, ref)
		if err != nil || !t.Lock.Busy {
			return false, o, err
		}
		if (action == ActionRollback && t.Lock.RemoveFrom != "") || (action == ActionInterrupt && t.Lock.NeedsReason()) {
			return false, o, s.sealAndRetry(ctx, ref)
		}
		active, err := s.getUnderLock(ctx, Ref{Ref: ref, Run: t.Lock.Run}, t.Lock)
		if fault.Is(err, fault.NotFound) {
			// It was rolled back meanwhile, and another run may have the thread.
			return false, o, record.ErrLost
		}
		if err != nil {
			return false, o, err
		}
		change := t.ChangeLock(s.Now())
		if action == ActionRollback {
			t.MarkRemoved(&change, active.Run, t.Lock.Last)
		} else {
			t.SkipQueue(&change)
			t.MarkSuperseded(&change, string(byRequest))
		}
		o, err = s.endActive(ctx, t, active, action, byRequest, change, nil)
		return true, o, err
	})
}

// CancelScope says which runs of a deployment are cancelled.
type CancelScope string

// Scopes of CancelDeployment.
const (
	CancelPending CancelScope = "pending"
	CancelRunning CancelScope = "running"
	CancelAll     CancelScope = "all"
)

// cancelPage is how many runs one query reads.
const cancelPage = 64

// CancelDeployment ends the unfinished runs of a deployment, on all its threads whose metadata
// matches a filter, and reports whether there were any such runs. It looks at the busy threads
// only.
func (s *Store) CancelDeployment(ctx context.Context, workspace, deployment string, only CancelScope, action Action, filter match.Filter) (found bool, err error) {
	for item, err := range table.Items(ctx, s.Table, keys.BusyThreads(workspace, deployment)...) {
		if err != nil {
			return found, fmt.Errorf("query busy threads: %w", err)
		}
		ref := thread.Ref{Workspace: workspace, Deployment: deployment, Thread: keys.ThreadID(item.Index[table.ByDue])}
		foundHere, err := s.cancelOn(ctx, ref, only, action, filter)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return found, err
		}
		found = found || foundHere
	}
	return found, nil
}

// cancelOn ends the runs of a thread that are in the scope, if the thread's metadata matches the
// filter.
func (s *Store) cancelOn(ctx context.Context, ref thread.Ref, only CancelScope, action Action, filter match.Filter) (found bool, err error) {
	if only == CancelAll && filter.Empty() {
		return s.CancelThread(ctx, ref, action)
	}
	t, err := s.Threads.Get(ctx, ref)
	if err != nil || !t.Lock.Busy {
		return false, err
	}
	if ok, err := filter.Matches(t.Metadata); err != nil || !ok {
		return false, err
	}
	if only == CancelAll {
		return s.CancelThread(ctx, ref, action)
	}
	cancelRun := func(run string, status Status) error {
		err := s.cancel(ctx, Ref{Ref: ref, Run: run}, cancellation{action: action, why: byRequest}, status)
		if err == nil {
			found = true
		} else if fault.Is(err, fault.NotFound) {
			err = nil // the run has another status by now
		}
		return err
	}
	if only == CancelRunning {
		err := cancelRun(t.Lock.Run, Running)
		return found, err
	}
	query := keys.RunsBetween(ref.Workspace, ref.Deployment, ref.Thread, t.Lock.Run, t.Lock.Last)
	// The reverse order keeps a run from beginning because the runs before it are cancelled.
	query.Limit, query.Reverse = cancelPage, true
	for item, err := range table.Items(ctx, s.Table, query) {
		if err != nil {
			return found, fmt.Errorf("query queued runs: %w", err)
		}
		if err := cancelRun(keys.RunID(item.Key), Pending); err != nil {
			return found, err
		}
	}
	return found, nil
}
