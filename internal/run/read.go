package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/table"
	"github.com/slipway-run/slipway/internal/thread"
)

func notFound(ref Ref) error {
	return fault.New(fault.NotFound, "Run with ID %s not found.", ref.Run)
}

// Get returns a run; an unknown one is a fault.NotFound.
func (s *Store) Get(ctx context.Context, ref Ref) (Run, error) {
	run, err := s.head(ctx, ref)
	if err != nil {
		return run, err
	}
	return run, s.load(ctx, &run)
}

// head returns a run without the large part of its request.
func (s *Store) head(ctx context.Context, ref Ref) (Run, error) {
	run, err := s.get(ctx, ref, thread.Lock{})
	if err != nil || run.Status != Pending {
		return run, err
	}
	// Only of a pending run does the thread's lock say more.
	_, run, err = s.read(ctx, ref)
	return run, err
}

// read returns a run and its thread. The thread is read first: a run that is still pending when its thread has passed it by stays so.
func (s *Store) read(ctx context.Context, ref Ref) (thread.Thread, Run, error) {
	t, err := s.threads.Get(ctx, ref.Ref)
	if err != nil {
		return thread.Thread{}, Run{}, err
	}
	run, err := s.get(ctx, ref, t.Lock)
	return t, run, err
}

func (s *Store) get(ctx context.Context, ref Ref, lock thread.Lock) (Run, error) {
	item, err := s.table.Get(ctx, ref.Key())
	if errors.Is(err, table.ErrNotFound) {
		return Run{}, notFound(ref)
	}
	if err != nil {
		return Run{}, fmt.Errorf("get run: %w", err)
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
	table.Window
}

// List returns a thread's runs, newest first.
func (s *Store) List(ctx context.Context, ref thread.Ref, filter Filter) ([]Run, error) {
	t, err := s.threads.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	query := keys.Runs(ref.Workspace, ref.Deployment, ref.Thread)
	query.Reverse = true
	found, err := table.Collect(ctx, s.table, query, filter.Window, func(item *table.Item) (Run, bool, error) {
		run, err := decode(Ref{Ref: ref, Run: keys.RunID(item.Key)}, item, t.Lock)
		return run, run.Status != Removed && (filter.Status == "" || run.Status == filter.Status), err
	})
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	all := make([]*Run, len(found))
	for i := range found {
		all[i] = &found[i]
	}
	return found, s.load(ctx, all...)
}

// Await waits until the run has a final status, or ctx ends, and returns it as it is then.
func (s *Store) Await(ctx context.Context, ref Ref) (Run, error) {
	w := s.watch(ref)
	defer w.Stop()
	for {
		run, err := s.head(ctx, ref)
		if err != nil || run.Status.Final() {
			return run, err
		}
		if err := w.wait(ctx); err != nil {
			return run, err
		}
	}
}

// watch wakes for everything that can change what a run shows: the run itself, and the lock that may overtake it.
func (s *Store) watch(ref Ref) *watch {
	return &watch{run: s.table.Watch(ref.Key()), thread: s.table.Watch(ref.Ref.Key())}
}

type watch struct{ run, thread table.Watcher }

func (w *watch) wait(ctx context.Context) error {
	select {
	case <-w.run.C():
		return nil
	case <-w.thread.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *watch) Stop() {
	w.run.Stop()
	w.thread.Stop()
}

// State returns the thread's state, with everything in it that earlier runs leave behind.
func (s *Store) State(ctx context.Context, ref thread.Ref) (thread.Thread, *thread.State, error) {
	t, err := s.Seal(ctx, ref)
	if err != nil {
		return t, nil, err
	}
	if t.Lock.Run == "" && t.Lock.Checkpoint < 0 {
		return t, thread.Empty(), nil
	}
	st, err := s.threads.State(ctx, ref)
	return t, st, err
}

// Result returns the state that a finished run left behind: its last checkpoint, for an interrupted run with what it had shown.
func (s *Store) Result(ctx context.Context, run Run) (*thread.State, error) {
	if run.Status == Interrupted {
		if _, err := s.Seal(ctx, run.Ref.Ref); err != nil {
			return nil, err
		}
		sealed, err := s.head(ctx, run.Ref)
		if err != nil {
			return nil, err
		}
		run = sealed
	}
	return s.threads.StateAt(ctx, run.Ref.Ref, run.Checkpoint)
}
