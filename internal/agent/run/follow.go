package run

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// ReaderPosition says how much of a thread a reader has read.
type ReaderPosition struct {
	// Position is the position of the last event that the reader has.
	Position int64
	// Ended says that the reader knows the end of the run to which this event belongs.
	Ended bool
	// Early is the number of later runs that never began and whose end the reader knows.
	Early int
}

// NewestPosition returns the position of a reader that wants new events only. It is behind the
// newest event, but before the end of the active run. It seals the thread, because the lock's
// position lies before the events of runs that are not sealed.
func (s *Store) NewestPosition(ctx context.Context, ref thread.Ref) (ReaderPosition, error) {
	t, err := s.Seal(ctx, ref)
	if err != nil || !t.Lock.Busy {
		return ReaderPosition{Position: t.Lock.Position, Ended: true}, err
	}
	active, err := s.getWithoutBulk(ctx, Ref{Ref: ref, Run: t.Lock.Run})
	if err != nil && !fault.Is(err, fault.NotFound) {
		return ReaderPosition{}, err
	}
	if active.Attempt == 0 {
		return ReaderPosition{Position: t.Lock.Position, Ended: true}, nil
	}
	return ReaderPosition{Position: active.Position}, nil
}

// Part is one piece that a reader of a thread gets: events of a run, or the end of a run.
type Part struct {
	// Run is the run as it was read. At the run's end, Run is the run as it is then, Removed
	// if it was rolled back.
	Run    Run
	Events []Event
	Ended  bool
	// Early is for a run that ended before a worker took it up. It is how many such runs there
	// are since the run that ended at Position, this run included. It is 0 for all other runs.
	// Only an Attendance emits such runs.
	Early    int
	Position int64
	// Edit is a state that a client has made by an update, nil in all other parts. The run of
	// such a part is the zero Run, and Position is the position after which the update came.
	Edit *thread.State
}

// Follow hands the events of a thread's runs to emit, one run after the other, and goes on with
// later runs until ctx ends or the thread is deleted. It begins with the run in which the position
// lies, from that run's first event on. A run that is rolled back ends. An error of emit ends
// Follow and is returned as it is.
func (s *Store) Follow(ctx context.Context, ref thread.Ref, from ReaderPosition, emit func(Part) error) error {
	f := follower{store: s, ref: ref, emit: emit}
	w := s.Table.Watch(ref.Key())
	defer w.Stop()
	if from.Position > 0 {
		if gone, err := f.seek(ctx, from); gone || err != nil {
			return err
		}
	}
	return f.all(ctx, w)
}

// seek goes to the run from which the follower reads, or says that the thread is gone.
func (f *follower) seek(ctx context.Context, from ReaderPosition) (gone bool, err error) {
	t, err := f.store.Threads.Get(ctx, f.ref)
	if fault.Is(err, fault.NotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, f.find(ctx, t.Lock, from)
}

// all hands over one run after the other. It also watches a run that waits to be taken up,
// because the beginning of the run does not change the thread.
func (f *follower) all(ctx context.Context, w table.Watcher) error {
	var next pendingRun
	defer next.stop()
	for {
		run, due, gone, err := f.readNext(ctx)
		switch {
		case gone:
			return nil
		case err != nil:
		case run == nil:
			err = next.wait(ctx, w, due)
		case run.Status != Pending:
			err = f.follow(ctx, *run)
		case next.run == run.Run:
			err = next.wait(ctx, w, nil)
		default: // the run may have begun before it was watched
			next.stop()
			next = pendingRun{run: run.Run, watcher: f.store.Table.Watch(run.Key())}
		}
		if err != nil {
			return err
		}
	}
}

// readNext is nextRun for the thread as it is now. gone says that the thread was deleted. It is a
// function of its own because a follower waits most of the time, and would keep the thread on its
// stack meanwhile.
func (f *follower) readNext(ctx context.Context) (next *Run, due <-chan time.Time, gone bool, err error) {
	t, err := f.store.Threads.Get(ctx, f.ref)
	if fault.Is(err, fault.NotFound) {
		return nil, nil, true, nil
	}
	if err != nil {
		return nil, nil, false, err
	}
	if f.threadCreated.IsZero() {
		f.threadCreated = t.Created
	}
	if !t.Created.Equal(f.threadCreated) { // the thread was deleted and created again
		return nil, nil, true, nil
	}
	next, due, err = f.nextRun(ctx, t)
	if err == nil && f.edits != nil {
		err = f.edits.upTo(ctx, t.Lock, next)
	}
	return next, due, false, err
}

// pendingRun is the run that a follower waits for, if it waits for a run.
type pendingRun struct {
	run     string
	watcher table.Watcher
}

func (p *pendingRun) stop() {
	if p.watcher != nil {
		p.watcher.Stop()
	}
}

// wait returns when the run or the thread, which w watches, may have changed, or when due fires.
func (p *pendingRun) wait(ctx context.Context, w table.Watcher, due <-chan time.Time) error {
	var begins <-chan struct{}
	if p.watcher != nil {
		begins = p.watcher.C()
	}
	return table.Await(ctx, due, w.C(), begins)
}

// follower is a reader of a thread.
type follower struct {
	store *Store
	ref   thread.Ref
	emit  func(Part) error
	// threadCreated is when the thread was created, zero before this time is known.
	threadCreated time.Time
	// done is the last run whose events the reader has completely. It is never a run that was
	// removed: a run that is created later may go before a removed run that was delayed.
	done string
	// position is the position at which the last run that began has ended. early counts the
	// later runs that never began. They are handed over if shows is true.
	position int64
	early    int
	shows    bool
	// edits hands over the states that clients make, nil if the reader does not want them.
	edits *edits
}

// followPage is how many runs one query reads.
const followPage = 32

// find sets done to the last run before the position. It searches from the newest run back.
func (f *follower) find(ctx context.Context, lock thread.Lock, from ReaderPosition) error {
	if from.Position == 0 {
		return nil
	}
	return f.back(ctx, lock, "", func(run Run) bool {
		if run.Attempt == 0 || !run.Status.Final() || run.Status == Removed ||
			run.Position > from.Position || (run.Position == from.Position && !from.Ended) {
			return true
		}
		f.done, f.position = run.Run, run.Position
		return false
	})
}

// nextRun returns the next run that a worker has claimed or that waits for a worker, nil if
// there is no such run. A delayed run that was cancelled may have an id that lies in the
// future. New runs may still go before it, so nextRun stops at this run, and due fires when the
// time of the run has come.
func (f *follower) nextRun(ctx context.Context, t thread.Thread) (next *Run, due <-chan time.Time, err error) {
	query := keys.RunsAfter(f.ref.Workspace, f.ref.Deployment, f.ref.Thread, f.done)
	query.Limit = followPage
	for item, err := range table.Items(ctx, f.store.Table, query) {
		if err != nil {
			return nil, nil, fmt.Errorf("query runs: %w", err)
		}
		run, err := decodeOn(f.ref, item, t.Lock)
		switch {
		case err != nil:
			return nil, nil, err
		case !run.Status.Final(), run.Attempt > 0 && run.Status != Removed:
			return &run, nil, nil
		case run.Status == Removed:
			continue
		}
		// The run never began.
		now := f.store.Now()
		if wait := id.Time(run.Run).Sub(now); wait > 0 && run.Run > lasting(t.Lock, t.Lock.Due.After(now)) {
			return nil, time.After(wait), nil
		}
		if err := f.skip(run); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, nil
}

// skip passes over a run that never began.
func (f *follower) skip(run Run) error {
	f.done = run.Run
	f.early++
	if !f.shows {
		return nil
	}
	return f.emit(Part{Run: run, Ended: true, Early: f.early, Position: f.position})
}

// follow hands over a run to its end. A run that was rolled back before the reader had any of
// its events has no end, either.
func (f *follower) follow(ctx context.Context, run Run) error {
	begun := false
	err := f.store.Stream(ctx, run, 0, func(events []Event) error {
		if len(events) > 0 {
			begun, f.position = true, events[len(events)-1].Position
		}
		return f.emit(Part{Run: run, Events: events})
	})
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	if run, err = f.atItsEnd(ctx, run); err != nil {
		return err
	}
	if run.Status != Removed {
		f.done = run.Run
		f.edits.pass(run)
	}
	if !begun {
		return nil
	}
	f.early = 0
	return f.emit(Part{Run: run, Ended: true, Position: f.position})
}

// atItsEnd returns a run as it is when it has ended.
func (f *follower) atItsEnd(ctx context.Context, run Run) (Run, error) {
	if run.Status.Final() {
		return run, nil
	}
	ended, err := f.store.getWithoutBulk(ctx, run.Ref)
	if fault.Is(err, fault.NotFound) {
		run.Status, err = Removed, nil
		return run, err
	}
	return ended, err
}
