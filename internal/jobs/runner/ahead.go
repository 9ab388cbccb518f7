package runner

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// The memory of an agent's answer that was read and is not stored yet is taken from the
// budget.
const (
	// maxAhead is how many events are read ahead.
	maxAhead = 64
	// aheadAllowance is how many bytes of these events are not counted.
	aheadAllowance = 256 << 10
	// eventCost is the cost of one byte of an event: it is read, checked, encoded, written and
	// shown to readers.
	eventCost = 4
	// valueCost is the cost of each JSON value of an event beside its bytes: the state keeps
	// lists as their elements, and each patch and each checkpoint that is encoded has its own
	// list of them.
	valueCost = 90
	// mostAhead is how many bytes may be held when the next event of an answer is begun.
	mostAhead = 2 << 20
	// largeStep is the size in bytes from which on an event must arrive in time. stepTime is
	// how long each further part of it may take; the whole of the earlier parts counts as one
	// part.
	largeStep = 64 << 10
	stepTime  = time.Minute
	// DefaultMemory is the budget of a runner without a configured budget. It is enough for one
	// event of the largest size together with several large requests.
	DefaultMemory = 192 << 20
)

// errSlowEvent says that a large event stopped arriving. It is the cause with which the call
// of the agent ends.
var errSlowEvent = errors.New("the agent began a large event and did not send the rest of it in time")

// ahead counts the part of an answer that was read and is not stored. The reader takes memory,
// and the pump gives it back.
type ahead struct {
	share *budget.Share
	late  *time.Timer
	step  time.Duration
	// event is how many bytes were taken for the event that is being read.
	event int
	// held is how many bytes the events hold, without the cost of their values; less signals
	// that held has decreased.
	held atomic.Int64
	less chan struct{}
}

// newAhead returns the counter of the events of one attempt. slow is called when a large event
// stops arriving.
func newAhead(b *budget.Budget, workspace string, step time.Duration, slow func()) *ahead {
	late := time.AfterFunc(step, slow)
	late.Stop()
	return &ahead{share: b.Open(workspace, aheadAllowance*eventCost), late: late, step: step, less: make(chan struct{}, 1)}
}

// take waits for room for a number of bytes of an event.
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

// arrived is called when the whole event has arrived. It waits for room for the event's values,
// and returns the size of the event.
func (a *ahead) arrived(ctx context.Context, event graph.Event) (size, error) {
	a.late.Stop()
	taken := size{bytes: a.event}
	a.event = 0
	if len(event.Data) < largeStep {
		return taken, nil
	}
	values := budget.Values(event.Data)
	if values > budget.MostValues {
		return taken, excess("JSON values in an event", "in one event", budget.MostValues)
	}
	if err := a.share.Grow(ctx, int64(values)*valueCost); err != nil {
		return taken, err
	}
	taken.values = values
	return taken, nil
}

// size is how many bytes were taken for events: their text, and their values if an event is large.
type size struct{ bytes, values int }

func (s size) plus(other size) size { return size{s.bytes + other.bytes, s.values + other.values} }

// give gives back the bytes that were taken for events that were stored or dropped.
func (a *ahead) give(taken size) {
	a.share.Shrink(int64(taken.bytes)*eventCost + int64(taken.values)*valueCost)
	a.held.Add(-int64(taken.bytes))
	select {
	case a.less <- struct{}{}:
	default:
	}
}

// wait waits until so few bytes are held that another event may begin.
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

// close gives all bytes back.
func (a *ahead) close() {
	a.late.Stop()
	a.share.Close()
}

// inbox holds the events that were read ahead.
type inbox struct {
	queue chan received
	*ahead
	// accepted is the size of the events that the pump has taken from the queue and not given
	// back.
	accepted size
}

// received is one event, or the error that ended the stream.
type received struct {
	event graph.Event
	err   error
	size  size
}

// receive reads the stream in the background, until the stream's error or the end of ctx. Then
// it closes the stream, and last the channel.
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
			taken, noRoom := ahead.arrived(ctx, event)
			if err == nil {
				err = noRoom
			}
			select {
			case events.queue <- received{event, err, taken}:
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

// stored gives the accepted events back.
func (i *inbox) stored() {
	i.give(i.accepted)
	i.accepted = size{}
}

// excess says that a run sent more than the limit for a run, or for an event: where names it.
func excess(what, where string, most int64) *failedError {
	message := fmt.Sprintf("The run has sent more than %d %s, which is the most that this server takes %s.", most, what, where)
	return &failedError{name: run.FailureOutputTooLarge, message: message}
}

// count returns an error if a run sends more than its limits: events of all its attempts, and
// bytes of this attempt. It also returns an error if the server has no room to store the data.
func (r *Runner) count(a *answer, data int) error {
	if r.Reserve != nil {
		if err := r.Reserve(); err != nil {
			return &failedError{name: run.FailureOutOfDisk, message: err.Error()}
		}
	}
	a.bytes += int64(data)
	if a.bytes > r.MaxBytes {
		return excess("bytes of events", "of one run", r.MaxBytes)
	}
	if a.attempt.Run.Position-a.attempt.Run.Start > r.MaxEvents {
		return excess("events", "of one run", r.MaxEvents)
	}
	return nil
}
