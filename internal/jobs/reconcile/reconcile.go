// Package reconcile repairs lost work: on a timer it looks at the rollouts, runs and deliveries of
// webhooks that took longer than their lease, and makes sure that each of them has a workflow that
// will end it. It also does the work that begins because time has passed: it fires crons, deletes
// threads whose time to live is over, cancels runs whose clients have gone, and reports listeners
// that are away and agents that have ended. A pass takes no input and reads everything again, so
// the pass after a crash is like every other pass. Passes are made by the reconcile function on AWS
// and by a goroutine on one machine.
package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/agent/cron"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/jobs/rollout"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
)

// margin is the time between the end of a pass and the deadline of its context. It is longer
// than the rescue of one run may take.
const margin = 8 * time.Second

// Reconciler makes the passes.
type Reconciler struct {
	Runs    *run.Store
	Rollout *rollout.Rollout
	// Webhooks are the messages that are not delivered yet; nil when there are no messages.
	Webhooks *webhook.Store
	// Threads are the threads whose time to live is over, Crons the crons that fire now; nil
	// when there are no such stores.
	Threads *thread.Store
	Crons   *cron.Store
	// Listeners are the listeners that may have gone offline; nil when there are no listeners.
	Listeners *listener.Store
	// Ends asks the place where agents run for the agents that have ended; nil when that place
	// reports them by itself.
	Ends func(context.Context) error
	// Sweep erases what dead processes left in the table; nil when they leave nothing.
	Sweep func(context.Context) error
	Now   clock.Clock
	Log   *slog.Logger
}

// Once looks at everything whose lease ended by dueBy: at rollouts, runs and webhooks
// concurrently, so that no kind has to wait for thousands of another kind. It sweeps when
// there is time left. A pass that has a deadline ends before the deadline; the next pass finds
// the remaining work. A panic in one kind of rescue is an error of the pass and ends no other
// kind.
func (r *Reconciler) Once(ctx context.Context, dueBy time.Time) error {
	pass := ctx
	if deadline, ok := ctx.Deadline(); ok {
		shorter, end := context.WithDeadline(ctx, deadline.Add(-margin))
		defer end()
		pass = shorter
	}
	var rescues sync.WaitGroup
	var mu sync.Mutex
	var troubles []error
	begin := func(doing string, rescue func() error) {
		rescues.Go(func() {
			err := guard.Run(r.Log, doing, rescue)
			mu.Lock()
			defer mu.Unlock()
			troubles = append(troubles, err)
		})
	}
	begin("rescue rollouts", func() error { return r.Rollout.Rescue(pass, dueBy) })
	begin("rescue runs", func() error { return r.Runs.Rescue(pass, dueBy) })
	begin("cancel runs whose clients have gone", func() error { return r.Runs.CancelMissed(pass, dueBy) })
	if r.Webhooks != nil {
		begin("rescue webhooks", func() error { return r.Webhooks.Rescue(pass, dueBy) })
	}
	if r.Listeners != nil {
		begin("tell of listeners that are away", func() error { return r.Listeners.ReportOffline(pass, dueBy) })
	}
	if r.Ends != nil {
		begin("ask for agents that have ended", func() error { return r.Ends(pass) })
	}
	if r.Crons != nil {
		begin("fire crons", func() error { return r.Crons.Fire(pass, r.Now()) })
	}
	if r.Threads != nil {
		begin("sweep threads", func() error { return r.Threads.Sweep(pass, r.Now(), r.Runs.Seal) })
	}
	rescues.Wait()
	if r.Sweep != nil && pass.Err() == nil {
		err := guard.Run(r.Log, "sweep", func() error { return r.Sweep(pass) })
		if pass.Err() == nil { // otherwise it was cut off
			troubles = append(troubles, err)
		}
	}
	if pass.Err() != nil {
		r.Log.WarnContext(ctx, "reconcile ran out of time, the next pass goes on")
	}
	return errors.Join(troubles...)
}

// Every makes passes until ctx ends, with an interval before each of them.
func (r *Reconciler) Every(ctx context.Context, interval time.Duration) {
	for clock.Sleep(ctx, interval) {
		if err := r.Once(ctx, r.Now()); err != nil && ctx.Err() == nil {
			r.Log.ErrorContext(ctx, "reconcile", "error", err)
		}
	}
}
