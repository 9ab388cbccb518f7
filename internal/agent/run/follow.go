package run

import (
	"context"
	"fmt"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
)

// Place is how far a reader of a thread is.
type Place struct {
	// Position is that of the last event that it has.
	Position int64
	// Ended says that it knows that the run of that event has ended.
	Ended bool
}

// Now is the place of a reader who wants what comes next: behind the newest event, and not behind the end of the run in flight.
func (s *Store) Now(ctx context.Context, ref thread.Ref) (Place, error) {
	t, err := s.threads.Get(ctx, ref)
	if err != nil || !t.Lock.Busy {
		return Place{Position: t.Lock.Position, Ended: true}, err
	}
	active, err := s.head(ctx, Ref{Ref: ref, Run: t.Lock.Run})
	if err != nil && !fault.Is(err, fault.NotFound) {
		return Place{}, err
	}
	if active.Attempt == 0 {
		return Place{Position: t.Lock.Position, Ended: true}, nil
	}
	return Place{Position: active.Position}, nil
}

// Part is what a reader of a thread gets at a time: events of a run, or its end.
type Part struct {
	Run    Run
	Events []Event
	Ended  bool
}

// Follow hands the events of a thread's runs to emit, one run after the other, and goes on with those that are yet to come, until ctx ends or the thread is
// gone. It begins with the run in which the place is, from its first event on. A run that is rolled back ends. Errors of emit end it and are returned as they
// are.
func (s *Store) Follow(ctx context.Context, ref thread.Ref, from Place, emit func(Part) error) error {
	f := follower{Store: s, ref: ref, emit: emit}
	w := s.table.Watch(ref.Key())
	defer w.Stop()
	if err := f.find(ctx, from); err != nil {
		return err
	}
	for {
		t, err := s.threads.Get(ctx, ref)
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		running, err := f.pass(ctx, t)
		if err != nil {
			return err
		}
		if running == nil {
			select {
			case <-w.C():
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		}
		if err := f.follow(ctx, *running); err != nil {
			return err
		}
	}
}

// follower is a reader of a thread.
type follower struct {
	*Store
	ref  thread.Ref
	emit func(Part) error
	// done is the last run of which the reader has everything.
	done string
}

// followPage is how many runs are read at a time.
const followPage = 32

// find looks for the last run before a place, from the newest on.
func (f *follower) find(ctx context.Context, from Place) error {
	if from.Position == 0 && !from.Ended {
		return nil
	}
	query := keys.Runs(f.ref.Workspace, f.ref.Deployment, f.ref.Thread)
	query.Reverse, query.Limit = true, followPage
	for {
		page, err := f.table.Query(ctx, query)
		if err != nil {
			return fmt.Errorf("query runs: %w", err)
		}
		for _, item := range page.Items {
			run, err := decode(Ref{Ref: f.ref, Run: keys.RunID(item.Key)}, item, thread.Lock{})
			if err != nil {
				return err
			}
			if run.Attempt > 0 && run.Status.Final() && (run.Position < from.Position || (run.Position == from.Position && from.Ended)) {
				f.done = run.Run
				return nil
			}
		}
		if page.Cursor == "" {
			return nil
		}
		query.Cursor = page.Cursor
	}
}

// pass hands over the runs that have ended, and returns the first that is being worked on; nil when there is none.
func (f *follower) pass(ctx context.Context, t thread.Thread) (*Run, error) {
	query := keys.RunsAfter(f.ref.Workspace, f.ref.Deployment, f.ref.Thread, f.done)
	query.Limit = followPage
	for {
		page, err := f.table.Query(ctx, query)
		if err != nil {
			return nil, fmt.Errorf("query runs: %w", err)
		}
		for _, item := range page.Items {
			run, err := decode(Ref{Ref: f.ref, Run: keys.RunID(item.Key)}, item, t.Lock)
			switch {
			case err != nil:
				return nil, err
			case run.Status == Running:
				return &run, nil
			case !run.Status.Final():
				return nil, nil
			case run.Attempt > 0 && run.Status != Removed:
				return &run, nil
			}
			f.done = run.Run // it never began, or is being removed
		}
		if page.Cursor == "" {
			return nil, nil
		}
		query.Cursor = page.Cursor
	}
}

// follow hands over a run to its end. One that was rolled back before the reader had anything of it has no end either.
func (f *follower) follow(ctx context.Context, run Run) error {
	begun := false
	err := f.Stream(ctx, run, 0, func(events []Event) error {
		begun = begun || len(events) > 0
		return f.emit(Part{Run: run, Events: events})
	})
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	f.done = run.Run
	if !begun {
		return nil
	}
	return f.emit(Part{Run: run, Ended: true})
}
