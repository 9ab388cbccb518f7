package run

import (
	"context"
	"fmt"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Attend is Follow for a reader who stays whatever becomes of the thread: it waits for a thread
// that is yet to come, also after its end, and hands over the ends of runs that never began, too.
// A nil place is the beginning of the active run, or of the newest if the thread is idle.
func (s *Store) Attend(ctx context.Context, ref thread.Ref, from *Place, emit func(Part) error) error {
	w := s.table.Watch(ref.Key())
	defer w.Stop()
	for {
		err := s.attend(ctx, ref, from, w, emit)
		if err != nil {
			return err
		}
		from = nil // a thread that is made anew has another log
		select {
		case <-w.C():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// attend returns when there is no thread.
func (s *Store) attend(ctx context.Context, ref thread.Ref, from *Place, w table.Watcher, emit func(Part) error) error {
	t, err := s.threads.Get(ctx, ref)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	f := follower{Store: s, ref: ref, emit: emit, shows: true}
	if from != nil {
		err = f.find(ctx, *from)
	} else {
		err = f.beginAt(ctx, t.Lock.Run)
	}
	if err != nil {
		return err
	}
	return f.all(ctx, w)
}

// beginAt begins with a run, which need not be there.
func (f *follower) beginAt(ctx context.Context, run string) error {
	return f.back(ctx, run, func(before Run) bool {
		if f.done == "" {
			f.done = before.Run
		}
		if before.Attempt > 0 {
			f.position = before.Position
			return false
		}
		f.early++
		return true
	})
}

// back visits the runs before one that are not removed, from the newest on, until visit wants no
// more.
func (f *follower) back(ctx context.Context, run string, visit func(Run) bool) error {
	query := keys.Runs(f.ref.Workspace, f.ref.Deployment, f.ref.Thread)
	query.Reverse, query.Limit = true, followPage
	for {
		page, err := f.table.Query(ctx, query)
		if err != nil {
			return fmt.Errorf("query runs: %w", err)
		}
		for _, item := range page.Items {
			before, err := decode(Ref{Ref: f.ref, Run: keys.RunID(item.Key)}, item, thread.Lock{})
			if err != nil {
				return err
			}
			if before.Run < run && before.Status != Removed && !visit(before) {
				return nil
			}
		}
		if page.Cursor == "" {
			return nil
		}
		query.Cursor = page.Cursor
	}
}

// Behind is the place before a run's first event, as far as it is known: behind the newest event of
// the runs before it that a worker took up.
func (s *Store) Behind(ctx context.Context, run Run) (Place, error) {
	f, place := follower{Store: s, ref: run.Ref.Ref}, Place{}
	err := f.back(ctx, run.Run, func(before Run) bool {
		if before.Attempt > 0 {
			place = Place{Position: before.Position, Ended: before.Status.Final()}
		}
		return before.Attempt == 0
	})
	return place, err
}
