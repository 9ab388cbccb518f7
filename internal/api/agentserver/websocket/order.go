package websocket

import (
	"context"
	"sync"
	"time"
)

// settleTime is how long after the last subscription the end of a run is sent. The hooks of the SDK
// start a run, and then send one subscription after the other. If the run of an agent that answers
// at once has ended by then, and the first subscription shows this, the hooks drop the events of
// the next subscription: 2 of 60 pages kept half of an answer, now 0 of 300.
const settleTime = 100 * time.Millisecond

// order keeps the events of all subscriptions of a WebSocket in the order of their numbers:
// when a client gets the end of a run on one subscription, it expects no more events of the
// run on any subscription. An event is sent when no subscription may have an earlier event.
// The subscription with the earliest event waits for no other, so no subscription waits for ever.
// The zero order has no subscriptions.
type order struct {
	mu sync.Mutex
	// next has a number for each subscription: none of its later events has a lower number.
	next map[*subscription]int64
	// moved is closed when a number changes; nil while no subscription waits for a change.
	moved chan struct{}
	// joined is when the last subscription was added.
	joined time.Time
}

// add adds a subscription: other subscriptions wait until it has sent the earlier events.
func (o *order) add(s *subscription) {
	o.mu.Lock()
	o.joined = time.Now()
	o.mu.Unlock()
	o.reached(s, 0)
}

// remove removes a subscription.
func (o *order) remove(s *subscription) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.next, s)
	o.wake()
}

// reached notes the number that a subscription has reached.
func (o *order) reached(s *subscription, next int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.next == nil {
		o.next = map[*subscription]int64{}
	}
	o.next[s] = next
	o.wake()
}

func (o *order) wake() {
	if o.moved != nil {
		close(o.moved)
		o.moved = nil
	}
}

// settle waits before a subscription sends the end of a run, until settleTime after the last
// subscription. It does not wait again for a subscription that comes meanwhile: a client that
// subscribes without a pause gets the end, too. Other subscriptions do not wait for this
// subscription.
func (o *order) settle(ctx context.Context, s *subscription, seq int64) error {
	o.reached(s, seq)
	o.mu.Lock()
	left := settleTime - time.Since(o.joined)
	o.mu.Unlock()
	if left <= 0 {
		return nil
	}
	select {
	case <-time.After(left):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// turn waits until it is the turn of an event of a subscription.
func (o *order) turn(ctx context.Context, s *subscription, seq int64) error {
	o.reached(s, seq)
	for {
		moved := o.blocked(seq)
		if moved == nil {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// blocked returns a channel that is closed when the caller should check again; nil if no
// subscription may have an event before a number.
func (o *order) blocked(seq int64) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, next := range o.next {
		if next < seq {
			if o.moved == nil {
				o.moved = make(chan struct{})
			}
			return o.moved
		}
	}
	return nil
}
