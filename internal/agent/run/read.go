package run

import (
	"context"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

func notFound(ref Ref) error {
	return fault.New(fault.NotFound, "Run with ID %s not found.", ref.Run)
}

// Get returns a run. It returns a fault.NotFound for an unknown run.
func (s *Store) Get(ctx context.Context, ref Ref) (Run, error) {
	return record.Retry(ctx, func(ctx context.Context) (run Run, err error) {
		if run, err = s.getWithoutBulk(ctx, ref); err == nil {
			err = s.loadBulk(ctx, &run)
		}
		return run, err
	})
}

// getWithoutBulk returns a run without the large part of its request.
func (s *Store) getWithoutBulk(ctx context.Context, ref Ref) (Run, error) {
	run, err := s.getUnderLock(ctx, ref, thread.Lock{})
	if err != nil || run.Status != Pending {
		return run, err
	}
	// Only a pending run needs the thread's lock: the lock can supersede it, unless it is active.
	t, err := s.Threads.Get(ctx, ref.Ref)
	if err != nil || (t.Lock.Busy && t.Lock.Run == ref.Run) {
		return run, err
	}
	return s.getUnderLock(ctx, ref, t.Lock)
}

// getWithThread returns a run and its thread. It reads the thread first. So a run that is pending,
// and that the lock supersedes, stays superseded.
func (s *Store) getWithThread(ctx context.Context, ref Ref) (thread.Thread, Run, error) {
	t, err := s.Threads.Get(ctx, ref.Ref)
	if err != nil {
		return thread.Thread{}, Run{}, err
	}
	run, err := s.getUnderLock(ctx, ref, t.Lock)
	return t, run, err
}

// getUnderLock returns a run with the status that it has under the given lock. A removed run is a
// fault.NotFound.
func (s *Store) getUnderLock(ctx context.Context, ref Ref, lock thread.Lock) (Run, error) {
	item, err := record.Get(ctx, s.Table, "run", ref.Key(), notFound(ref))
	if err != nil {
		return Run{}, err
	}
	run, err := decode(ref, item, lock)
	if err == nil && run.Status == Removed {
		err = notFound(ref)
	}
	return run, err
}

// Filter narrows a list of runs.
type Filter struct {
	// Status keeps only runs with the status; "" keeps all.
	Status Status
	// Before is the id of a run, which need not exist: only runs before it are kept; "" keeps all.
	Before string
	record.Window
}

// listRoom is how many bytes the requests of the runs in one list may hold.
const listRoom = 64 << 20

// List returns a thread's runs, newest first, and reports whether more runs follow. It returns
// fewer runs than the caller asked for if their requests are large, but at least one.
func (s *Store) List(ctx context.Context, ref thread.Ref, filter Filter) (page []Run, more bool, err error) {
	page, err = record.Retry(ctx, func(ctx context.Context) (page []Run, err error) {
		page, more, err = s.list(ctx, ref, filter)
		return page, err
	})
	return page, more, err
}

func (s *Store) list(ctx context.Context, ref thread.Ref, filter Filter) (page []Run, more bool, err error) {
	t, err := s.Threads.Get(ctx, ref)
	if err != nil {
		return nil, false, err
	}
	query := keys.Runs(ref.Workspace, ref.Deployment, ref.Thread)
	if filter.Before != "" {
		query = keys.RunsBetween(ref.Workspace, ref.Deployment, ref.Thread, "", filter.Before)
	}
	query.Reverse = true
	window := filter.Window
	window.NoCursor = true
	window.Limit++ // the additional run shows whether there are more
	listed, err := record.List(ctx, s.Table, "runs", query, window, func(item *table.Item) (Run, bool, error) {
		run, err := decodeOn(ref, item, t.Lock)
		return run, run.Status != Removed && run.Run != filter.Before && (filter.Status == "" || run.Status == filter.Status), err
	})
	if err != nil {
		return nil, false, err
	}
	runs := listed.Items
	var shown []*Run
	room := int64(listRoom)
	for i := range runs[:min(len(runs), filter.Limit)] {
		if room -= runs[i].Bulk; room < 0 && i > 0 {
			break
		}
		shown = append(shown, &runs[i])
	}
	return runs[:len(shown)], len(shown) < len(runs), s.loadBulk(ctx, shown...)
}

// Await waits until the run has a final status, or ctx ends. It returns the run as it is then.
// A run that is rolled back meanwhile has the status Removed. Await returns a fault.NotFound
// for an unknown run.
func (s *Store) Await(ctx context.Context, ref Ref) (Run, error) {
	w, err := s.WatchEnd(ctx, ref)
	if err != nil {
		return Run{}, err
	}
	ended, err := w.End(ctx)
	return *ended, err
}

// EndWatch waits for the end of a run.
type EndWatch struct {
	store *Store
	run   Run
	watch *watch
	// cancelRelease cancels the release of the watch at the end of the context.
	cancelRelease func() bool
}

// WatchEnd begins to watch for the end of a run. The watch is released when ctx ends, or by End. An
// unknown run is a fault.NotFound.
func (s *Store) WatchEnd(ctx context.Context, ref Ref) (*EndWatch, error) {
	w := &EndWatch{store: s, watch: s.watch(ref)}
	var err error
	if w.run, err = s.getWithoutBulk(ctx, ref); err != nil {
		w.watch.Stop()
		return nil, err
	}
	w.cancelRelease = context.AfterFunc(ctx, w.watch.Stop)
	return w, nil
}

// Over reports whether the run had ended when the watch began.
func (w *EndWatch) Over() bool { return w.run.Status.Final() }

// End waits as Await does, and returns the run in any case. Call it once.
func (w *EndWatch) End(ctx context.Context) (*Run, error) {
	defer w.watch.Stop()
	defer w.cancelRelease()
	for !w.run.Status.Final() {
		if err := w.watch.wait(ctx, w.run.Status); err != nil {
			return &w.run, err
		}
		if err := w.refresh(ctx); err != nil {
			return &w.run, err
		}
	}
	return &w.run, nil
}

// refresh reads the run as it is now.
func (w *EndWatch) refresh(ctx context.Context) error {
	next, err := w.watch.get(ctx, w.store, w.run.Ref)
	if fault.Is(err, fault.NotFound) {
		next, err = Run{Ref: w.run.Ref, Status: Removed}, nil
	}
	if err == nil {
		w.run = next
	}
	return err
}

// watch wakes for every change that can affect how a run is shown: a change of the run itself,
// and of the lock, which may supersede the run as long as it is pending.
func (s *Store) watch(ref Ref) *watch {
	return &watch{run: s.Table.Watch(ref.Key()), thread: s.Table.Watch(ref.Ref.Key())}
}

type watch struct{ run, thread table.Watcher }

// wait returns when the run may differ from the run that was read with this status.
func (w *watch) wait(ctx context.Context, status Status) error {
	if status != Pending {
		w.thread.Stop()
	}
	return table.Await(ctx, nil, w.run.C(), w.thread.C())
}

// get returns the run as the last wake-up has delivered it, and reads it if no wake-up has. The
// lock of the thread may have changed a pending run.
func (w *watch) get(ctx context.Context, s *Store, ref Ref) (Run, error) {
	if item := w.run.Item(); item != nil {
		run, err := decode(ref, item, thread.Lock{})
		if err != nil || run.Status != Pending {
			return run, err
		}
	}
	return s.getWithoutBulk(ctx, ref)
}

func (w *watch) Stop() {
	w.run.Stop()
	w.thread.Stop()
}

// State returns the thread's state, including everything that earlier runs leave behind.
func (s *Store) State(ctx context.Context, ref thread.Ref) (thread.Thread, thread.State, error) {
	t, err := s.Threads.Get(ctx, ref)
	if err != nil {
		return t, thread.Empty(), err
	}
	return s.StateOf(ctx, t)
}

// StateOf is State for a thread that was read.
func (s *Store) StateOf(ctx context.Context, t thread.Thread) (thread.Thread, thread.State, error) {
	t, log, err := s.seal(ctx, t)
	switch {
	case err == nil && log != nil:
		return t, log.State, nil
	case err != nil || (t.Lock.Run == "" && t.Lock.Checkpoint < 0):
		return t, thread.Empty(), err
	}
	st, err := s.Threads.State(ctx, t.Ref)
	return t, st, err
}

// GetSealed returns a run in its final form. An interrupted run is returned after its leftovers
// were sealed. The checkpoint of a run that was cancelled in the queue is the thread's present one,
// unless Seal has put the run's input into the state.
func (s *Store) GetSealed(ctx context.Context, run Run) (Run, error) {
	if run.Status != Interrupted {
		return run, nil
	}
	t, err := s.Seal(ctx, run.Ref.Ref)
	if err != nil {
		return run, err
	}
	if run, err = s.getWithoutBulk(ctx, run.Ref); run.needsNoSeal() || run.Run > t.Lock.SealedUpTo {
		run.Checkpoint = t.Lock.Checkpoint
	}
	return run, err
}

// Result returns the state that a finished run left behind: the state of its last checkpoint.
// The state of an interrupted run includes the output that the run had shown. If the thread was
// pruned since, the result is the thread's newest state.
func (s *Store) Result(ctx context.Context, run Run) (thread.State, error) {
	run, err := s.GetSealed(ctx, run)
	if err != nil {
		return thread.Empty(), err
	}
	st, err := s.stateAt(ctx, run.Ref.Ref, run.Checkpoint)
	if fault.Is(err, fault.NotFound) {
		return s.Threads.State(ctx, run.Ref.Ref)
	}
	return st, err
}

// stateAt returns the state at a checkpoint that a run has made. It returns a fault.NotFound if the
// checkpoint was pruned.
func (s *Store) stateAt(ctx context.Context, ref thread.Ref, number int64) (thread.State, error) {
	st, err := s.Threads.StateAt(ctx, ref, number)
	if err == nil && st.At.Number < 0 && number >= 0 {
		err = fault.New(fault.NotFound, "Thread %s does not have the history of this run any more.", ref.Thread)
	}
	return st, err
}
