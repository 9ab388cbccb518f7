package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/id"
	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/state"
	"github.com/slipway-run/slipway/internal/table"
	"github.com/slipway-run/slipway/internal/thread"
)

// sealBatch is how many runs are sealed in one transaction at most: each takes two writes, the lock one. Large inputs make it less.
const sealBatch = 40

// Seal folds into the thread's state what the superseded runs before the active one leave behind, in the order of the runs: the
// unfinished messages that a run had shown, and the input of a run that never started. It returns the thread with its lock as it is
// afterwards. Sealing twice, or by two workers at a time, folds everything once.
func (s *Store) Seal(ctx context.Context, ref thread.Ref) (thread.Thread, error) {
	var st *thread.State // as it is at epoch next, after this sealer's own batch
	var next int64
	for range contention {
		t, err := s.threads.Get(ctx, ref)
		if err != nil || !t.Lock.Unsealed {
			return t, err
		}
		if st == nil || t.Lock.Epoch != next {
			if st, err = s.threads.State(ctx, ref); err != nil {
				return thread.Thread{}, err
			}
		}
		err = s.sealBatch(ctx, t, st)
		if _, ok := errors.AsType[*table.ConditionFailed](err); ok {
			st = nil
		} else if err != nil {
			return thread.Thread{}, err
		}
		next = t.Lock.Epoch + 1
	}
	return thread.Thread{}, fmt.Errorf("seal thread %s: others kept changing it", ref.Thread)
}

// sealing is one batch in the making.
type sealing struct {
	*Store
	thread thread.Thread
	state  *thread.State
	now    time.Time
	writes []table.Write
	// size is how many bytes the checkpoints among the writes hold.
	size int
	// sealed and position are those of the lock after the batch.
	sealed   string
	position int64
}

// sealBatch seals the next runs and makes st the state after them. When it fails, st is of no use any more.
func (s *Store) sealBatch(ctx context.Context, t thread.Thread, st *thread.State) error {
	runs, complete, err := s.unsealed(ctx, t)
	if err != nil {
		return err
	}
	b := sealing{Store: s, thread: t, state: st, now: s.now(), sealed: t.Lock.Sealed, position: t.Lock.Position}
	for i, run := range runs {
		if err := b.add(ctx, run); err != nil {
			return err
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
		return fmt.Errorf("seal runs: %w", err)
	}
	return nil
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
		if run.Run > t.Lock.Run || !run.Status.Final() {
			return runs, true, nil // the active run, or one that waits behind it
		}
		runs = append(runs, run)
	}
	return runs, page.Cursor == "", nil
}

// add folds in one run.
func (b *sealing) add(ctx context.Context, run Run) error {
	update, source := run.Input, thread.SourceInput
	if run.Attempt > 0 {
		partials, err := b.partials(ctx, run)
		if err != nil {
			return err
		}
		partials.Close(b.state.Values)
		update, source = partials.Update(), thread.SourceUpdate
		b.position = run.Position
	}
	if state.IsObject(update) {
		patch, err := b.state.Values.Reduce(update, func() string { return id.New(b.now) })
		if err != nil {
			return fmt.Errorf("fold run %s: %w", run.Run, err)
		}
		if !patch.Empty() {
			put := b.state.Advance(b.thread.Ref, b.now, run.Run, source, patch)
			b.writes = append(b.writes, put)
			b.size += len(put.Item.Body)
		}
	}
	// What a pending status meant so far is written down now, as the lock will move on.
	settle := b.supersede(run.Ref, b.now)
	settle.Set[attrCheckpoint] = b.state.At.Number
	settle.If = table.In(attrStatus, string(Pending), string(Interrupted))
	b.writes = append(b.writes, settle)
	b.sealed = run.Run
	return nil
}

// partials reads what a run had shown of messages that it did not finish.
func (s *Store) partials(ctx context.Context, run Run) (*state.Partials, error) {
	partials := new(state.Partials)
	if run.Open == 0 {
		return partials, nil
	}
	query := keys.Events(run.Workspace, run.Deployment, run.Thread, run.Open, run.Position)
	items, err := table.AllItems(ctx, s.table, query)
	if err != nil {
		return nil, fmt.Errorf("query events of run %s: %w", run.Run, err)
	}
	for _, item := range items {
		b, err := decodeEvents(item)
		if err != nil {
			return nil, err
		}
		for _, event := range b.events {
			if event.Name == EventMessages {
				partials.Add(event.Data, b.attempt)
			}
		}
	}
	return partials, nil
}
