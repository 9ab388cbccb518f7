package runner

import (
	"context"
	"errors"
	"io"
	"time"
)

// errAnswered says that the agent's answer is complete.
var errAnswered = errors.New("the agent has answered")

// errStopped says that the reader saw the end of its context, and no other error.
var errStopped = errors.New("the agent was stopped")

// pump takes an agent's events until the clean end of its answer, or until the reader stops.
// It always returns an error that says why. Events that arrive close together are written
// together; the last events are left for the caller, which ends the attempt. Writes may take
// all the time of ctx, because a write that is cut off leaves open whether it was applied.
func (r *Runner) pump(ctx context.Context, a *answer, events *inbox) error {
	watcher := a.attempt.WatchLoss()
	defer watcher.Stop()
	heartbeat := time.NewTimer(r.Heartbeat)
	defer heartbeat.Stop()
	pace := newPace(r.FlushDelay)
	defer pace.Stop()
	for {
		select {
		case got, open := <-events.queue:
			if err := r.accept(a, got, open, pace); err != nil {
				return err
			}
			events.accepted = events.accepted.plus(got.size)
			if !a.attempt.HasUnflushed() {
				events.stored() // the event needs no write
			}
			if !a.attempt.Full() {
				continue
			}
		case <-pace.C:
		case <-heartbeat.C:
			heartbeat.Reset(r.SilentHeartbeat)
			r.busy.beat(ctx)
			if r.FlushInterval > 0 && a.attempt.HasUnflushed() {
				continue // pace has them written soon, and this renews the lease, too
			}
		case <-watcher.C():
			if err := a.attempt.CheckOwned(ctx); err != nil {
				return err
			}
			continue
		case <-ctx.Done():
			return ctx.Err()
		}
		pace.write(a.attempt.HasUnflushed())
		if err := a.attempt.Flush(ctx); err != nil {
			return err
		}
		events.stored()
	}
}

// accept takes the reader's next event, if there is one.
func (r *Runner) accept(a *answer, got received, open bool, pace *pace) error {
	switch {
	case !open:
		return errStopped
	case errors.Is(got.err, io.EOF):
		return errAnswered
	case got.err != nil:
		return got.err
	}
	if err := r.count(a, len(got.event.Data)); err != nil {
		return err
	}
	waited := a.attempt.HasUnflushed()
	err := a.handle(got.event)
	if !waited && a.attempt.HasUnflushed() { // an event may change nothing that is written
		pace.begin(r.interval(a.attempt.Run.HasReader))
	}
	if err != nil || a.bytes-a.grown < growStep {
		return err
	}
	a.grown = a.bytes
	return a.grow()
}

// interval is the least time between two writes of a run's events.
func (r *Runner) interval(hasReader bool) time.Duration {
	if hasReader {
		return r.FlushInterval
	}
	return max(r.FlushInterval, r.ReaderlessInterval)
}

// pace is the timer that decides when waiting events are written: a delay after the first of
// them, and an interval after the previous write.
type pace struct {
	*time.Timer
	delay   time.Duration
	written time.Time
}

func newPace(delay time.Duration) *pace {
	timer := time.NewTimer(0)
	timer.Stop()
	return &pace{Timer: timer, delay: delay}
}

// begin is called with the first waiting event.
func (p *pace) begin(interval time.Duration) { p.Reset(max(p.delay, interval-time.Since(p.written))) }

// write is called before each write; waiting says whether the write holds events.
func (p *pace) write(waiting bool) {
	if waiting {
		p.Stop()
		p.written = time.Now()
	}
}
