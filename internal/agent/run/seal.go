package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// maxSealedRuns is the largest number of runs sealed in one transaction. Each run needs up to four
// writes, the lock needs one write, and so does a permit. At most one of the runs has a permit,
// because a run seals everything before it when it takes a permit. Large inputs make batches
// smaller.
const maxSealedRuns = 24

// Seal adds the leftovers of all runs that ended early (interrupted or cancelled) to the thread's
// state, in the order of their ids. It first erases the runs that a rollback removed. It returns
// the thread with its new lock. Leftovers are:
//
//   - the updates that finished steps of an interrupted run returned after the newest checkpoint
//     of an agent that keeps checkpoints;
//   - the shown text of the interrupted run's steps under way, marked incomplete (unfinished.go);
//   - the input of an interrupted run, if the newest checkpoint is the agent's own for this input:
//     its values lack the input, because no step has taken it;
//   - the inputs of runs that were interrupted before their first claim. The comments of withdrawn
//     and hasInput say which of these runs leave nothing.
//
// Leftovers that the state cannot hold stay with their run, which ends with the failure
// StateTooLarge.
//
// Seal works in batches, each in a transaction of its own. A batch starts behind the mark
// SealedUpTo, and has the condition that the lock's epoch is the epoch that was read. So Seal is
// idempotent, and two workers that seal at once add everything once. The transaction of a batch
// also holds the messages to the webhooks of the interrupted runs, and its outbox calls the
// Observer after the commit.
//
// These functions call Seal before their own work:
//
//   - Claim, Fail and TimeOut, if the lock says Unsealed;
//   - Create and Cancel in four cases: they would replace a mark of the lock that Seal still needs
//     (mustSealFirst, sealAndRetry); they would go before superseded runs; they fork while a
//     removal is not complete; they have to send or show the state;
//   - each reader and each other writer of the newest state: for example Delete, the copy of a
//     thread, a client's update of the state, and the reader of an interrupted run's result.
//
// Create, Cancel, Finish, Fail and TimeOut also call Seal after their commit, if they leave runs to
// seal and no worker will seal them soon: no run follows, or a delayed run. If the process dies
// before, Rescue seals the thread, because one of the runs to seal has a lease: the run that Create
// or Cancel has ended, or the newest of the runs behind the run that has finished.
func (s *Store) Seal(ctx context.Context, ref thread.Ref) (thread.Thread, error) {
	t, err := s.Threads.Get(ctx, ref)
	if err != nil {
		return t, err
	}
	t, _, err = s.seal(ctx, t)
	return t, err
}

// workerSeals reports whether the worker of the run that follows is about to seal the thread. No
// worker comes if no run follows, and no worker comes soon to a delayed run.
func (s *Store) workerSeals(next *Run) bool { return next != nil && !next.Due.After(s.Now()) }

// sealIfNeeded seals a thread after a commit that has left runs to seal, unless the worker of the
// next run does so.
func (s *Store) sealIfNeeded(ctx context.Context, ref thread.Ref, next *Run) {
	if s.workerSeals(next) {
		return
	}
	if _, err := s.Seal(ctx, ref); err != nil {
		s.Log.ErrorContext(ctx, "thread was not sealed: reconcile seals it later", "thread", ref.Thread, "error", err)
	}
}

// sealResult is a thread and its log after a batch. The log is nil if it must be read again.
type sealResult struct {
	thread thread.Thread
	log    *thread.Log
}

// seal is Seal for a thread that was just read. It also returns the resulting log, nil if the
// caller must read it. Sealers of one process take turns: after an interrupt, the worker of the
// next run and the readers of the interrupted run want to seal the same leftovers at once. With one
// reader, the first event of the next run comes after 3.2 ms. If the reader and the worker do the
// work twice, it comes after 4.4 to 4.7 ms (p50 of four rounds, two processors).
func (s *Store) seal(ctx context.Context, t thread.Thread) (thread.Thread, *thread.Log, error) {
	if !t.Lock.NeedsSeal() {
		return t, nil, nil
	}
	end, waited, err := s.sealing.Take(ctx, t.Ref)
	if err != nil {
		return thread.Thread{}, nil, err
	}
	defer end()
	if waited {
		if t, err = s.Threads.Get(ctx, t.Ref); err != nil {
			return thread.Thread{}, nil, err
		}
	}
	result := sealResult{thread: t}
	for result.thread.Lock.NeedsSeal() {
		if result, err = s.sealNextBatch(ctx, result); err != nil {
			return thread.Thread{}, nil, err
		}
	}
	return result.thread, result.log, nil
}

// sealNextBatch removes or seals the thread's next batch of runs.
func (s *Store) sealNextBatch(ctx context.Context, last sealResult) (sealResult, error) {
	removing := last.thread.Lock.RemoveFrom != ""
	next, err := decideOn(ctx, s, last.thread, func(ctx context.Context, t thread.Thread) (_ sealResult, o record.Outbox, err error) {
		log := last.log
		if t.Lock.Epoch != last.thread.Lock.Epoch {
			log = nil // another writer has changed the thread since the log was read
		}
		if removing = t.Lock.RemoveFrom != ""; removing {
			o, err = s.remove(ctx, t)
			return sealResult{thread: t}, o, err
		}
		if !t.Lock.Unsealed {
			return sealResult{thread: t}, o, nil
		}
		return s.planSeal(ctx, t, log)
	})
	if err == nil && removing {
		next.thread, err = s.Threads.Get(ctx, next.thread.Ref)
	}
	return next, err
}

// sealPlan collects the writes of one batch.
type sealPlan struct {
	store  *Store
	thread thread.Thread
	log    thread.Log
	now    time.Time
	out    record.Outbox
	// size is the total size in bytes of the checkpoints and notifications among the writes.
	size int
	// sealedUpTo and position are the lock's values after the batch.
	sealedUpTo string
	position   int64
	// idleView is what the thread shows after the batch, while no run is in flight.
	idleView thread.IdleView
}

// planSeal returns the writes that seal the next runs, and the thread and log that result. It
// reads the log if it is nil.
func (s *Store) planSeal(ctx context.Context, t thread.Thread, log *thread.Log) (next sealResult, o record.Outbox, err error) {
	if log == nil {
		st, err := s.Threads.State(ctx, t.Ref)
		if err != nil {
			return next, o, err
		}
		read := thread.NewLog(t.Ref, st)
		log = &read
	}
	runs, complete, err := s.unsealed(ctx, t)
	if err != nil {
		return next, o, err
	}
	b := sealPlan{store: s, thread: t, log: *log, now: s.Now(), sealedUpTo: t.Lock.SealedUpTo, position: t.Lock.Position, idleView: t.IdleView}
	for i, run := range runs {
		if err := b.addRun(ctx, run); err != nil {
			return next, o, err
		}
		if b.size >= fullBytes && i < len(runs)-1 {
			complete = false
			break
		}
	}
	b.moveLock(!complete)
	return sealResult{b.thread, &b.log}, b.out, nil
}

// moveLock writes that the state accounts for the batch, and changes the thread as the write does.
// more says whether other runs have to be sealed.
func (b *sealPlan) moveLock(more bool) {
	t := b.thread
	change := t.ChangeLock(b.now)
	t.MarkSealed(&change, b.sealedUpTo, b.position, b.log.At.Number, more)
	t.SetIdleView(&change, b.idleView)
	b.out.Add(change)
	t.IdleView = b.idleView
	if t.Updated = b.now; t.Lock.Checkpoint != b.log.At.Number {
		t.StateUpdated = b.now
	}
	t.Lock.Epoch++
	t.Lock.SealedUpTo, t.Lock.Position, t.Lock.Checkpoint, t.Lock.Unsealed = b.sealedUpTo, b.position, b.log.At.Number, more
	b.thread = t
}

// unsealed returns the next runs that ended early and are to be sealed, oldest first. complete
// means that no more follow.
func (s *Store) unsealed(ctx context.Context, t thread.Thread) (runs []Run, complete bool, err error) {
	query := keys.RunsAfter(t.Workspace, t.Deployment, t.Thread, t.Lock.SealedUpTo)
	query.Limit = maxSealedRuns
	page, err := s.Table.Query(ctx, query)
	if err != nil {
		return nil, false, fmt.Errorf("query runs to seal: %w", err)
	}
	for _, item := range page.Items {
		run, err := decodeOn(t.Ref, item, t.Lock)
		if err != nil {
			return nil, false, err
		}
		if !run.Status.Final() || (t.Lock.Busy && run.Run >= t.Lock.Run) {
			return runs, true, s.loadInputs(ctx, runs) // the active run, or a run behind it
		}
		runs = append(runs, run)
	}
	return runs, page.Cursor == "", s.loadInputs(ctx, runs)
}

// loadInputs loads the requests of the runs that never started and of the runs with a webhook.
func (s *Store) loadInputs(ctx context.Context, runs []Run) error {
	var needed []*Run
	for i := range runs {
		if runs[i].Attempt == 0 || runs[i].Webhook != "" {
			needed = append(needed, &runs[i])
		}
	}
	return s.loadBulk(ctx, needed...)
}

// addRun adds to the batch a run's leftovers, its end, the release of its permit and the message to
// its webhook. If nothing of the run is left to seal, it only moves the mark.
func (b *sealPlan) addRun(ctx context.Context, run Run) error {
	if run.needsNoSeal() {
		b.sealedUpTo = run.Run
		return nil
	}
	checkpointBefore := b.log.At.Number
	if run.Attempt > 0 {
		checkpointBefore, b.position = run.CheckpointBefore, run.Position
	}
	err := b.fold(ctx, run)
	if full, ok := errors.AsType[*thread.TooLargeError](err); ok {
		run.Failure, err = StateTooLarge(full), nil // the leftovers stay with their run only
	}
	if err != nil {
		return fmt.Errorf("fold run %s: %w", run.Run, err)
	}
	if view, leaves := run.idleView(run.CancelReason); leaves && !run.CancelReason.byClient() {
		b.idleView = view
	}
	b.out.Add(b.storeEnd(run, checkpointBefore))
	if run.CheckpointRewritten {
		b.out.Add(table.Delete{Key: originalKey(run.Ref)})
	}
	b.out.Join(b.store.releasePermit(run))
	b.sealedUpTo = run.Run
	if run.EndNotified {
		return nil
	}
	run.Status = Interrupted
	notification := b.store.notifyEnd(run, b.log.Values, b.now)
	b.out.Join(notification)
	for _, write := range notification.Writes {
		if put, ok := write.(table.Put); ok {
			b.size += len(put.Item.Body)
		}
	}
	return nil
}

// storeEnd writes how and when the run ended and its checkpoints, and removes its lease. The lock
// implied the status, the reason and the time, but it keeps only those of the newest interrupt.
func (b *sealPlan) storeEnd(run Run, checkpointBefore int64) table.Update {
	set := table.Attrs{
		attrStatus: string(Interrupted), record.Updated: clock.Format(run.Updated),
		attrCheckpoint: b.log.At.Number, attrCheckpointBefore: checkpointBefore,
	}
	if run.CancelReason != "" {
		set[attrCancelReason] = string(run.CancelReason)
	}
	if run.Failure != nil {
		set[attrFailure] = string(record.Encode(run.Failure))
	}
	return table.Update{
		Key: run.Key(), Set: set, Add: map[string]int64{record.Version: 1}, Index: b.store.endedEntry(run, b.now),
		If: table.In(attrStatus, string(Pending), string(Interrupted)),
	}
}

// fold adds one run's leftovers to the log. If it fails, the log stays as it is.
func (b *sealPlan) fold(ctx context.Context, run Run) error {
	switch {
	case run.withdrawn(run.CancelReason):
		return nil
	case run.Attempt == 0:
		return b.addInput(ctx, run)
	default:
		return b.addLeftovers(ctx, run)
	}
}

// addInput adds the input of a run that never started.
func (b *sealPlan) addInput(ctx context.Context, run Run) error {
	if has, err := b.store.hasInput(ctx, run); err != nil || !has {
		return err
	}
	input, err := state.Coerce(run.Input.JSON(), func() string { return id.New(b.now) })
	if err != nil {
		return err
	}
	log, _, err := b.store.branch(ctx, run, b.log)
	if err != nil {
		return err
	}
	values, patch := log.Values.Reduce(input)
	if patch.Empty() {
		return nil
	}
	pending := []graph.StateUpdate{{Values: input.JSON(), AsNode: nodeInput}}
	return b.apply(log, run, thread.Change{Source: thread.SourceInput, Values: values, Patch: patch, Pending: pending})
}

// addLeftovers adds the leftovers of a started run that the state lacks: its shown output, and its
// input if no step has taken the input.
func (b *sealPlan) addLeftovers(ctx context.Context, run Run) error {
	l, err := b.store.leftovers(ctx, run)
	if err != nil {
		return err
	}
	if inputNotStepped(b.log.State, run) {
		if err := b.store.loadBulk(ctx, &run); err != nil {
			return err
		}
		l.input = run.GraphInput()
	}
	k, err := b.store.newLeftoverFold(ctx, b.thread.Ref, b.log.State, l)
	if err != nil {
		return err
	}
	change, err := k.fold(l)
	if err != nil || (change.Patch.Empty() && len(change.Pending) == 0) {
		return err
	}
	return b.apply(b.log, run, change)
}

// apply records a change that a run has left as the next checkpoint of a log.
func (b *sealPlan) apply(log thread.Log, run Run, change thread.Change) error {
	change.Run, change.Graph = run.Run, run.Graph
	next, writes, err := log.Apply(b.now, change)
	if err != nil {
		return err
	}
	size := 0
	for _, write := range writes {
		if put, ok := write.(table.Put); ok {
			if err := thread.CheckSize(put, next.Values, b.store.MaxBody); err != nil {
				return err
			}
			size += len(put.Item.Body)
		}
	}
	b.log, b.size = next, b.size+size
	b.out.Add(writes...)
	return nil
}
