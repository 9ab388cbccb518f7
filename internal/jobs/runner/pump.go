package runner

import (
	"context"
	"errors"
	"io"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/slipway-run/slipway/internal/seam/graph"
)

// received is one event, or what ended the stream.
type received struct {
	event graph.Event
	err   error
	// size is what the event takes of the inbox's room.
	size int64
}

// What is read ahead of an agent's answer is bounded in events and in bytes.
const (
	maxAhead   = 64
	aheadBytes = 32 << 20
)

// inbox holds what was read ahead.
type inbox struct {
	queue chan received
	room  *semaphore.Weighted
}

// errAnswered says that the agent's answer is complete.
var errAnswered = errors.New("the agent has answered")

// errStopped says that the reader saw the end of its context, and nothing else.
var errStopped = errors.New("the agent was stopped")

// pump takes an agent's events until the clean end of its answer, or until the reader stops: it always returns an error that says why. Events that
// arrive close together are written together; the last ones are left for who ends the attempt. Writes have all the time of ctx, as one that
// is cut off leaves open whether it was applied.
func (r *Runner) pump(ctx context.Context, a *answer, events *inbox) error {
	watcher := r.Runs.WatchAttempt(a.attempt)
	defer watcher.Stop()
	heartbeat := time.NewTicker(r.Heartbeat)
	defer heartbeat.Stop()
	pace := newPace(r.FlushDelay, r.FlushInterval)
	defer pace.Stop()
	for {
		select {
		case got, open := <-events.queue:
			events.room.Release(got.size)
			if err := a.accept(got, open, pace); err != nil {
				return err
			}
			if !a.attempt.Full() {
				continue
			}
		case <-pace.C:
		case <-heartbeat.C:
			if pace.holds(a.attempt.Waiting()) {
				continue
			}
		case <-watcher.C():
			if err := r.Runs.Owned(ctx, a.attempt); err != nil {
				return err
			}
			continue
		case <-ctx.Done():
			return ctx.Err()
		}
		pace.write(a.attempt.Waiting())
		if err := a.attempt.Flush(ctx); err != nil {
			return err
		}
	}
}

// accept takes what the reader has, if it has anything.
func (a *answer) accept(got received, open bool, pace *pace) error {
	switch {
	case !open:
		return errStopped
	case errors.Is(got.err, io.EOF):
		return errAnswered
	case got.err != nil:
		return got.err
	}
	if !a.attempt.Waiting() {
		pace.begin()
	}
	return a.take(got.event)
}

// pace is the timer that decides when waiting events are written: a delay after the first of them, and an interval after the write before.
type pace struct {
	*time.Timer
	delay, interval time.Duration
	written         time.Time
}

func newPace(delay, interval time.Duration) *pace {
	timer := time.NewTimer(0)
	timer.Stop()
	return &pace{Timer: timer, delay: delay, interval: interval}
}

// begin is called with the first event that waits.
func (p *pace) begin() { p.Reset(max(p.delay, p.interval-time.Since(p.written))) }

// holds reports whether a heartbeat must not write, as the write of what waits is to come; it renews the lease, too.
func (p *pace) holds(waiting bool) bool { return waiting && p.interval > 0 }

// write is called before each write, with whether it holds events.
func (p *pace) write(waiting bool) {
	if waiting {
		p.Stop()
		p.written = time.Now()
	}
}

// receive reads the stream in the background, until its error or the end of ctx; then it closes the stream, and last the channel.
func receive(ctx context.Context, stream *graph.Stream) *inbox {
	events := &inbox{queue: make(chan received, maxAhead), room: semaphore.NewWeighted(aheadBytes)}
	go func() {
		defer close(events.queue)
		defer stream.Close()
		for {
			event, err := stream.Next()
			size := min(int64(len(event.Data)), aheadBytes)
			if events.room.Acquire(ctx, size) != nil {
				return
			}
			select {
			case events.queue <- received{event, err, size}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return events
}
