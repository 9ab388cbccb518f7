package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
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

// Seal adds the leftovers of the superseded runs before the active run to the thread's state, in
// the order of the runs: the unfinished messages of a run that had started, and the input of a run
// that was interrupted before it started. It also erases runs that were rolled back. It returns the
// thread with its new lock. Sealing twice, or by two workers at once, adds everything once.
func (s *Store) Seal(ctx context.Context, ref thread.Ref) (thread.Thread, error) {
	t, err := s.threads.Get(ctx, ref)
	if err != nil {
		return t, err
	}
	t, _, err = s.seal(ctx, t)
	return t, err
}

// sealResult is a thread and its state after a batch. The state is nil if it must be read again.
type sealResult struct {
	thread thread.Thread
	state  *thread.State
}

// seal is Seal for a thread that was just read. It also returns the resulting state, nil if the
// caller must read it.
func (s *Store) seal(ctx context.Context, t thread.Thread) (thread.Thread, *thread.State, error) {
	now, lost := sealResult{thread: t}, map[string]*TooLargeError{}
	for now.thread.Lock.Cut != "" || now.thread.Lock.Unsealed {
		var err error
		if now, err = s.sealNextBatch(ctx, now, lost); err != nil {
			return thread.Thread{}, nil, err
		}
	}
	return now.thread, now.state, nil
}

// sealNextBatch removes or seals the thread's next batch of runs. It adds runs to lost if the state
// cannot hold their leftovers.
func (s *Store) sealNextBatch(ctx context.Context, now sealResult, lost map[string]*TooLargeError) (sealResult, error) {
	removing := now.thread.Lock.Cut != ""
	next, err := decideOn(ctx, s, now.thread, func(ctx context.Context, t thread.Thread, first bool) (_ sealResult, o record.Outbox, err error) {
		st := now.state
		if !first {
			st = nil // the batch that failed has changed it
		}
		if removing = t.Lock.Cut != ""; removing {
			o, err = s.remove(ctx, t)
			return sealResult{thread: t}, o, err
		}
		if !t.Lock.Unsealed {
			return sealResult{thread: t}, o, nil
		}
		return s.planSeal(ctx, t, st, lost)
	})
	_, full := errors.AsType[*TooLargeError](err)
	if full {
		next.thread.Ref, err = now.thread.Ref, nil // without the run that is lost, the next batch can hold the others
	}
	if err == nil && (full || removing) {
		next.thread, err = s.threads.Get(ctx, next.thread.Ref)
	}
	return next, err
}

// sealPlan collects the writes of one batch.
type sealPlan struct {
	*Store
	thread thread.Thread
	state  *thread.State
	now    time.Time
	out    record.Outbox
	// size is the total size in bytes of the checkpoints and notifications among the writes.
	size int
	// lost has the runs whose leftovers the state cannot hold, by run id.
	lost map[string]*TooLargeError
	// sealed and position are the lock's values after the batch.
	sealed   string
	position int64
}

// planSeal returns the writes that seal the next runs, and the thread and state that result. It
// reads the state if st is nil, and changes st: do not use st again if the commit fails.
func (s *Store) planSeal(ctx context.Context, t thread.Thread, st *thread.State, lost map[string]*TooLargeError) (next sealResult, o record.Outbox, err error) {
	if st == nil {
		if st, err = s.threads.State(ctx, t.Ref); err != nil {
			return next, o, err
		}
	}
	runs, complete, err := s.unsealed(ctx, t)
	if err != nil {
		return next, o, err
	}
	b := sealPlan{Store: s, thread: t, state: st, now: s.now(), lost: lost, sealed: t.Lock.Sealed, position: t.Lock.Position}
	for i, run := range runs {
		if err := b.add(ctx, run); err != nil {
			return next, o, err
		}
		if b.size >= fullBytes && i < len(runs)-1 {
			complete = false
			break
		}
	}
	change := t.ChangeLock(b.now)
	t.MarkSealed(&change, b.sealed, b.position, b.state.At.Number, !complete)
	b.out.Add(change)
	if t.Updated = b.now; t.Lock.Checkpoint != b.state.At.Number {
		t.StateUpdated = b.now
	}
	t.Lock.Epoch++
	t.Lock.Sealed, t.Lock.Position, t.Lock.Checkpoint, t.Lock.Unsealed = b.sealed, b.position, b.state.At.Number, !complete
	return sealResult{t, st}, b.out, nil
}

// unsealed returns the next superseded runs to seal, oldest first. complete means that no more
// follow.
func (s *Store) unsealed(ctx context.Context, t thread.Thread) (runs []Run, complete bool, err error) {
	query := keys.RunsAfter(t.Workspace, t.Deployment, t.Thread, t.Lock.Sealed)
	query.Limit = maxSealedRuns
	page, err := s.table.Query(ctx, query)
	if err != nil {
		return nil, false, fmt.Errorf("query runs to seal: %w", err)
	}
	for _, item := range page.Items {
		run, err := decodeOn(t.Ref, item, t.Lock)
		if err != nil {
			return nil, false, err
		}
		if !run.Status.Final() || (t.Lock.Busy && run.Run >= t.Lock.Run) {
			return runs, true, s.loadInputs(ctx, runs) // the active run, or one behind it
		}
		runs = append(runs, run)
	}
	return runs, page.Cursor == "", s.loadInputs(ctx, runs)
}

// loadInputs loads the requests of the runs that never started and of the runs with a webhook.
func (s *Store) loadInputs(ctx context.Context, runs []Run) error {
	var waited []*Run
	for i := range runs {
		if runs[i].Attempt == 0 || runs[i].Webhook != "" {
			waited = append(waited, &runs[i])
		}
	}
	return s.loadBulk(ctx, waited...)
}

// add adds one run to the batch. A run that was refused has no leftovers.
func (b *sealPlan) add(ctx context.Context, run Run) error {
	if run.Refusal != nil {
		b.sealed = run.Run
		return nil
	}
	before := b.state.At.Number
	if run.Attempt > 0 {
		before, b.position = run.Before, run.Position
	}
	full := b.lost[run.Run]
	if full == nil {
		if err := b.fold(ctx, run); err != nil {
			return err
		}
	}
	if full != nil {
		run.Failure = full.Failure()
	}
	b.out.Add(b.settle(run, before))
	if run.Amended {
		b.out.Add(table.Delete{Key: amended(run.Ref)})
	}
	b.out.Join(b.releasePermit(run))
	run.Status = Interrupted
	tell := b.tell(run, b.state.Values, b.now)
	b.out.Join(tell)
	for _, write := range tell.Writes {
		if put, ok := write.(table.Put); ok {
			b.size += len(put.Item.Body)
		}
	}
	b.sealed = run.Run
	return nil
}

// settle writes the status that the lock implied: once the lock has moved past the run, the status
// can no longer be derived. Readers already know the time of the end, so Updated stays.
func (b *sealPlan) settle(run Run, before int64) table.Update {
	set := table.Attrs{attrStatus: string(Interrupted), attrCheckpoint: b.state.At.Number, attrBefore: before}
	if run.CancelReason != "" {
		set[attrCancelReason] = string(run.CancelReason)
	}
	if run.Failure != nil {
		set[attrFailure] = string(record.Encode(run.Failure))
	}
	return table.Update{
		Key: run.Key(), Set: set, Add: map[string]int64{record.Version: 1}, Index: b.over(run, b.now),
		If: table.In(attrStatus, string(Pending), string(Interrupted)),
	}
}

// fold adds one run's leftovers to the state, or adds the run to lost if the state cannot hold
// them.
func (b *sealPlan) fold(ctx context.Context, run Run) error {
	var err error
	switch {
	case run.takenBack(run.CancelReason):
	case run.Attempt == 0:
		err = b.addInput(run)
	default:
		err = b.addLeftovers(ctx, run)
	}
	if full, ok := errors.AsType[*TooLargeError](err); ok {
		b.lost[run.Run] = full
	}
	if err != nil {
		return fmt.Errorf("fold run %s: %w", run.Run, err)
	}
	return nil
}

// addInput adds the input of a run that never started.
func (b *sealPlan) addInput(run Run) error {
	if !state.IsObject(run.Input) {
		return nil
	}
	newID := func() string { return id.New(b.now) }
	input, err := state.Coerce(run.Input, newID)
	if err != nil {
		return err
	}
	patch, err := b.state.Values.Reduce(input, newID)
	if err == nil && !patch.Empty() {
		err = b.advance(run, thread.SourceInput, patch, []graph.StateUpdate{{Values: input, AsNode: nodeInput}})
	}
	return err
}

// addLeftovers adds the output that a started run had shown but not finished.
func (b *sealPlan) addLeftovers(ctx context.Context, run Run) error {
	l, err := b.leftovers(ctx, run)
	if err != nil {
		return err
	}
	if inputNotStepped(b.state, run) {
		if err := b.loadBulk(ctx, &run); err != nil {
			return err
		}
		l.input = run.Input
	}
	k, err := b.newLeftoverFold(ctx, b.thread.Ref, b.state, l)
	if err != nil {
		return err
	}
	patch, pending, err := k.fold(l)
	if err == nil && (!patch.Empty() || len(pending) > 0) {
		err = b.advance(run, thread.SourceUpdate, patch, pending)
	}
	return err
}

func (b *sealPlan) advance(run Run, source thread.Source, patch state.Patch, pending []graph.StateUpdate) error {
	put := b.state.Advance(b.thread.Ref, b.now, thread.Change{Run: run.Run, Graph: run.Graph, Source: source, Patch: patch, Pending: pending})
	b.out.Add(put)
	b.size += len(put.Item.Body)
	return fits(put)
}
