package runner

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// What is read of an agent's answer and not stored yet is taken from the budget.
const (
	// maxAhead is how many events are read ahead.
	maxAhead = 64
	// aheadAllowance is how much of them is not counted.
	aheadAllowance = 256 << 10
	// eventCost is what a byte of an event costs: it is read, checked, encoded, written and shown
	// to readers.
	eventCost = 4
	// mostAhead is from how many bytes on the next event of an answer is not begun.
	mostAhead = 2 << 20
	// largeStep is from how many bytes on an event must arrive in time, and stepTime how long each
	// further part may take, the whole of what came before being one part.
	largeStep = 64 << 10
	stepTime  = time.Minute
	// defaultMemory is the budget of a runner that is given none.
	defaultMemory = 192 << 20
)

// errSlowEvent says that a large event did not go on arriving. It is the cause by which the call of
// the agent ends.
var errSlowEvent = errors.New("the agent began a large event and did not send the rest of it in time")

// ahead is what was read of an answer and is not stored. The reader takes, and the pump gives back.
type ahead struct {
	share *budget.Share
	late  *time.Timer
	step  time.Duration
	// event is what was taken for the event that is being read.
	event int
	// held is what the events hold, and less tells that it became less.
	held atomic.Int64
	less chan struct{}
}

// newAhead returns what counts the events of one attempt. slow is called when a large event stops
// arriving.
func newAhead(b *budget.Budget, workspace string, step time.Duration, slow func()) *ahead {
	late := time.AfterFunc(step, slow)
	late.Stop()
	return &ahead{share: b.Open(workspace, aheadAllowance*eventCost), late: late, step: step, less: make(chan struct{}, 1)}
}

// take waits for room for so many bytes of an event.
func (a *ahead) take(ctx context.Context, bytes int) error {
	a.late.Stop()
	if err := a.share.Grow(ctx, int64(bytes)*eventCost); err != nil {
		return err
	}
	a.held.Add(int64(bytes))
	a.event += bytes
	if bytes >= largeStep {
		a.late.Reset(a.step)
	}
	return nil
}

// arrived is called when the event is there as a whole, and returns what was taken for it.
func (a *ahead) arrived() (bytes int) {
	a.late.Stop()
	bytes, a.event = a.event, 0
	return bytes
}

// give takes back what was stored, or thrown away.
func (a *ahead) give(bytes int) {
	a.share.Shrink(int64(bytes) * eventCost)
	a.held.Add(-int64(bytes))
	select {
	case a.less <- struct{}{}:
	default:
	}
}

// wait waits until little enough is held to begin another event.
func (a *ahead) wait(ctx context.Context) error {
	for a.held.Load() > mostAhead {
		select {
		case <-a.less:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// close gives everything back.
func (a *ahead) close() {
	a.late.Stop()
	a.share.Close()
}

// inbox holds what was read ahead.
type inbox struct {
	queue chan received
	*ahead
	// accepted is what the pump has taken from the queue and not given back.
	accepted int
}

// received is one event, or what ended the stream.
type received struct {
	event graph.Event
	err   error
	// size is what was taken for it.
	size int
}

// receive reads the stream in the background, until its error or the end of ctx; then it closes the
// stream, and last the channel.
func (r *Runner) receive(ctx context.Context, stream *graph.Stream, ahead *ahead) *inbox {
	events := &inbox{queue: make(chan received, maxAhead), ahead: ahead}
	stream.Reserve(func(bytes int) error { return ahead.take(ctx, bytes) })
	go func() {
		defer close(events.queue)
		defer stream.Close()
		for ahead.wait(ctx) == nil {
			var event graph.Event
			err := guard.Run(r.Log, "read an agent's answer", func() (err error) {
				event, err = stream.Next()
				return err
			})
			select {
			case events.queue <- received{event, err, ahead.arrived()}:
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

// stored gives back what was accepted.
func (i *inbox) stored() {
	i.give(i.accepted)
	i.accepted = 0
}

// excessError says that a run sent more than a run may.
type excessError struct {
	what string
	most int64
}

func (e *excessError) Error() string {
	return fmt.Sprintf("The run has sent more than %d %s, which is the most that this server takes of one run.", e.most, e.what)
}

// noRoomError says that the server cannot store what a run sends.
type noRoomError struct{ error }

// count refuses what a run sends beyond its bounds: events of all its attempts, and bytes of this
// one. It also refuses what the server has no room for.
func (r *Runner) count(a *answer, data int) error {
	if r.Reserve != nil {
		if err := r.Reserve(); err != nil {
			return noRoomError{err}
		}
	}
	a.bytes += int64(data)
	if a.bytes > r.MaxBytes {
		return &excessError{"bytes of events", r.MaxBytes}
	}
	if a.attempt.Run.Position-a.attempt.Run.Start > r.MaxEvents {
		return &excessError{"events", r.MaxEvents}
	}
	return nil
}
