// Package reconcile heals what was lost: on a timer it looks at the rollouts and runs that took longer than their lease, and sees to it that each has a
// workflow that will end it. It takes no input and reads everything anew, so the rare path is the common one. It is the work of the reconcile function on AWS and of a
// goroutine on one machine.
package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/rollout"
	"github.com/slipway-run/slipway/internal/run"
)

// Reconciler makes the passes.
type Reconciler struct {
	Runs    *run.Store
	Rollout *rollout.Rollout
	Now     clock.Clock
	Log     *slog.Logger
}

// Once looks at everything whose lease ended by a time.
func (r *Reconciler) Once(ctx context.Context, dueBy time.Time) error {
	return errors.Join(r.Rollout.Rescue(ctx, dueBy), r.Runs.Rescue(ctx, dueBy))
}

// Every makes a pass each interval until ctx ends.
func (r *Reconciler) Every(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := r.Once(ctx, r.Now()); err != nil && ctx.Err() == nil {
				r.Log.ErrorContext(ctx, "reconcile", "error", err)
			}
		}
	}
}
