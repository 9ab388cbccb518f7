package agentserver

import (
	"context"
	"sync"
)

// order keeps the events of all subscriptions of a WebSocket in the order of their numbers: clients
// take the end of a run on one subscription for the end of its events on all of them. An event is
// sent when no subscription may have an earlier one. The subscription with the earliest event never
// waits, so none waits for ever. The zero order has no subscriptions.
type order struct {
	mu sync.Mutex
	// next are numbers that no later event of a subscription goes below.
	next map[*subscription]int64
	// moved is closed when a number changes, nil while nobody waits for that.
	moved chan struct{}
}

// join adds a subscription: others wait until it has sent what came before.
func (o *order) join(s *subscription) { o.reached(s, 0) }

// leave takes a subscription out.
func (o *order) leave(s *subscription) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.next, s)
	o.wake()
}

// reached notes how far a subscription is.
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

// blocked returns what is closed when it is worth looking again, nil if no subscription may have an
// event before a number.
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
