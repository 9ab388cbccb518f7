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

// sealBatch is how many runs are sealed in one transaction at most: each takes up to four writes, the lock one, and a seat one, which only one of them can have, as
// a run that takes one has sealed what was before it. Large inputs make it less.
const sealBatch = 24

// Seal folds into the thread's state what the superseded runs before the active one leave behind, in the order of the runs: the
// unfinished messages that a run had shown, and the input of a run that never started. It returns the thread with its lock as it is
// afterwards. Sealing twice, or by two workers at a time, folds everything once.
func (s *Store) Seal(ctx context.Context, ref thread.Ref) (thread.Thread, error) {
	t, err := s.threads.Get(ctx, ref)
	if err != nil {
		return t, err
	}
	t, _, err = s.seal(ctx, t)
	return t, err
}

// seal is Seal of a thread that was read. It also returns the state that it left, nil when it had nothing to fold.
func (s *Store) seal(ctx context.Context, t thread.Thread) (thread.Thread, *thread.State, error) {
	var st *thread.State
	lost := map[string]*TooLargeError{}
	for range contention {
		var err error
		switch {
		case t.Lock.Cut != "":
			st, err = nil, s.remove(ctx, t)
		case !t.Lock.Unsealed:
			return t, st, nil
		default:
			var after thread.Thread
			if after, st, err = s.sealNext(ctx, t, st, lost); err == nil {
				t = after
				continue
			}
		}
		if _, full := errors.AsType[*TooLargeError](err); err != nil && !full && !isChanged(err) {
			return thread.Thread{}, nil, err
		}
		if t, err = s.threads.Get(ctx, t.Ref); err != nil {
			return thread.Thread{}, nil, err
		}
	}
	return thread.Thread{}, nil, fmt.Errorf("seal thread %s: others kept changing it", t.Thread)
}

// sealNext seals the next runs of a thread whose state is st, nil to have it read, and returns both as they are then.
func (s *Store) sealNext(ctx context.Context, t thread.Thread, st *thread.State, lost map[string]*TooLargeError) (thread.Thread, *thread.State, error) {
	var err error
	if st == nil {
		if st, err = s.threads.State(ctx, t.Ref); err != nil {
			return t, nil, err
		}
	}
	if t, err = s.sealBatch(ctx, t, st, lost); err != nil {
		return t, nil, err
	}
	return t, st, nil
}

// sealing is one batch in the making.
type sealing struct {
	*Store
	thread thread.Thread
	state  *thread.State
	now    time.Time
	writes []table.Write
	// told begin the sending of what is told of the runs, and give on the seats that they leave.
	told []func(context.Context)
	// size is how many bytes the checkpoints among the writes hold, with what is told of the runs.
	size int
	// lost are the runs whose leftovers the state cannot hold.
	lost map[string]*TooLargeError
	// sealed and position are those of the lock after the batch.
	sealed   string
	position int64
}

// sealBatch seals the next runs, makes st the state after them and returns the thread as it is then; a run that it finds to be lost, it adds to those. When it fails, st
// is of no use any more.
func (s *Store) sealBatch(ctx context.Context, t thread.Thread, st *thread.State, lost map[string]*TooLargeError) (thread.Thread, error) {
	runs, complete, err := s.unsealed(ctx, t)
	if err != nil {
		return t, err
	}
	b := sealing{Store: s, thread: t, state: st, now: s.now(), lost: lost, sealed: t.Lock.Sealed, position: t.Lock.Position}
	for i, run := range runs {
		if err := b.add(ctx, run); err != nil {
			return t, err
		}
		if b.size >= fullBytes && i < len(runs)-1 {
			complete = false
			break
		}
	}
	lock := table.Attrs{
		thread.AttrSealed: b.sealed, thread.AttrPosition: b.position, thread.AttrCheckpoint: b.state.At.Number,
		thread.AttrUnsealed: !complete,
	}
	if err := s.table.Transact(ctx, append(b.writes, t.ChangeLock(b.now, lock))...); err != nil {
		return t, fmt.Errorf("seal runs: %w", err)
	}
	for _, begin := range b.told {
		begin(ctx)
	}
	if t.Updated = b.now; t.Lock.Checkpoint != b.state.At.Number {
		t.StateUpdated = b.now
	}
	t.Lock.Epoch++
	t.Lock.Sealed, t.Lock.Position, t.Lock.Checkpoint, t.Lock.Unsealed = b.sealed, b.position, b.state.At.Number, !complete
	return t, nil
}

// unsealed returns the next superseded runs to seal, oldest first, and whether they are the last.
func (s *Store) unsealed(ctx context.Context, t thread.Thread) (runs []Run, complete bool, err error) {
	query := keys.RunsAfter(t.Workspace, t.Deployment, t.Thread, t.Lock.Sealed)
	query.Limit = sealBatch
	page, err := s.table.Query(ctx, query)
	if err != nil {
		return nil, false, fmt.Errorf("query runs to seal: %w", err)
	}
	for _, item := range page.Items {
		run, err := decode(Ref{Ref: t.Ref, Run: keys.RunID(item.Key)}, item, t.Lock)
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

// loadInputs completes the requests of the runs that never started, or that are told of.
func (s *Store) loadInputs(ctx context.Context, runs []Run) error {
	var waited []*Run
	for i := range runs {
		if runs[i].Attempt == 0 || runs[i].Webhook != "" {
			waited = append(waited, &runs[i])
		}
	}
	return s.load(ctx, waited...)
}

// add folds in one run.
func (b *sealing) add(ctx context.Context, run Run) error {
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
	// What a pending status meant so far is written down now, as the lock will move on.
	settle := b.end(run.Ref, Interrupted, run.CancelReason, b.now)
	settle.Set[attrCheckpoint], settle.Set[attrBefore] = b.state.At.Number, before
	if full != nil {
		run.Failure = full.Failure()
		settle.Set[attrFailure] = string(record.Encode(run.Failure))
	}
	settle.If = table.In(attrStatus, string(Pending), string(Interrupted))
	settle.Index = b.over(run, b.now)
	b.writes = append(b.writes, settle)
	if run.Amended {
		b.writes = append(b.writes, table.Delete{Key: amended(run.Ref)})
	}
	b.writes = append(b.writes, leave(run)...)
	b.told = append(b.told, func(ctx context.Context) { b.vacated(ctx, run) })
	run.Status = Interrupted
	tell, told := b.tell(run, b.state.Values, b.now)
	b.writes, b.told = append(b.writes, tell...), append(b.told, told)
	for _, write := range tell {
		if put, ok := write.(table.Put); ok {
			b.size += len(put.Item.Body)
		}
	}
	b.sealed = run.Run
	return nil
}

// fold puts into the state what one run leaves behind, or notes that it is lost.
func (b *sealing) fold(ctx context.Context, run Run) error {
	var err error
	if run.Attempt == 0 {
		err = b.addInput(run)
	} else {
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

// addInput folds in the input of a run that never started.
func (b *sealing) addInput(run Run) error {
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

// addLeftovers folds in what a run had shown and not finished.
func (b *sealing) addLeftovers(ctx context.Context, run Run) error {
	l, err := b.leftovers(ctx, run)
	if err != nil {
		return err
	}
	if waits(b.state, run) {
		if err := b.load(ctx, &run); err != nil {
			return err
		}
		l.input = run.Input
	}
	k, err := b.left(ctx, b.thread.Ref, b.state, l)
	if err != nil {
		return err
	}
	patch, pending, err := k.fold(l)
	if err == nil && (!patch.Empty() || len(pending) > 0) {
		err = b.advance(run, thread.SourceUpdate, patch, pending)
	}
	return err
}

func (b *sealing) advance(run Run, source thread.Source, patch state.Patch, pending []graph.StateUpdate) error {
	put := b.state.Advance(b.thread.Ref, b.now, thread.Change{Run: run.Run, Graph: run.Graph, Source: source, Patch: patch, Pending: pending})
	b.writes = append(b.writes, put)
	b.size += len(put.Item.Body)
	return fits(put)
}
