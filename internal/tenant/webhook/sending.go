package webhook

import (
	"context"
	"sync"

	"github.com/slipway-run/slipway/internal/base/guard"
)

// sendingKey is the key of a context's attempts.
type sendingKey struct{}

// Sending returns a context for work for which no client waits. Commits with this context make the
// first attempt to send their messages in this process, beside the work, and start a workflow only
// for a message that does not arrive. sent returns when these attempts have ended. If the process
// dies before that, Rescue starts the workflows.
func Sending(ctx context.Context) (_ context.Context, sent func()) {
	attempts := &sync.WaitGroup{}
	return context.WithValue(ctx, sendingKey{}, attempts), attempts.Wait
}

// carry begins to send stored deliveries: by an attempt in this process if the context is one of
// Sending, otherwise by their workflows.
func (s *Store) carry(d Delivery) func(context.Context) {
	return func(ctx context.Context) {
		attempts, ok := ctx.Value(sendingKey{}).(*sync.WaitGroup)
		if !ok {
			s.startOrLog(ctx, d)
			return
		}
		attempts.Go(guard.Func(s.Log, "send a message", func() {
			answer, err := s.attempt(ctx, d.DeliveryRef, false)
			if err != nil {
				s.Log.WarnContext(ctx, "the first attempt of a delivery is left to its workflow", "delivery", d.Delivery, "error", err)
			}
			if err != nil || answer.Next == wait {
				s.startOrLog(ctx, d)
			}
		}))
	}
}

// startOrLog starts the workflow of a delivery. A failure is only logged: Rescue starts it later.
func (s *Store) startOrLog(ctx context.Context, d Delivery) {
	if err := s.start(ctx, d); err != nil {
		s.Log.ErrorContext(ctx, "delivery was not started: reconcile starts it later", "delivery", d.Delivery, "error", err)
	}
}
