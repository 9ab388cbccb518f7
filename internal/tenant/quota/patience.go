package quota

import (
	"context"
	"log/slog"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/guard"
)

// Patience is how long work may wait for a workspace's agent or receiver before it counts as a
// stream. Sound agents and receivers answer sooner, so their work pays for no place.
const Patience = time.Second

// Patiently does work that waits for a workspace's agent or receiver. If the work is not done
// after the time of patience, it takes a place, and keeps it until it is done. Without a place the
// work is broken off, and the error is the refusal, a fault.TooMany: what is slow in one workspace
// does not take the server from all others.
func Patiently(ctx context.Context, log *slog.Logger, patience time.Duration, take func(context.Context) (leave func(), err error), work func(context.Context) error) error {
	ctx, breakOff := context.WithCancelCause(ctx)
	defer breakOff(nil)
	leave, taken := func() {}, make(chan struct{})
	late := time.AfterFunc(patience, func() {
		defer close(taken)
		guard.Func(log, "take a place for slow work", func() {
			given, err := take(ctx)
			switch {
			case err == nil:
				leave = given
			case fault.Is(err, fault.TooMany):
				breakOff(err)
			case ctx.Err() == nil:
				log.WarnContext(ctx, "slow work could not be counted", "error", err)
			}
		})()
	})
	err := work(ctx)
	refused := context.Cause(ctx)
	if !late.Stop() {
		breakOff(nil)
		<-taken
		leave()
	}
	if err != nil && fault.Is(refused, fault.TooMany) {
		return refused
	}
	return err
}
