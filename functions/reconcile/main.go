// Command reconcile finds rollouts and runs that were lost, makes sure that they end, reports
// agents and listeners that are gone, and erases the remains of dead processes and removed
// releases. A schedule of EventBridge invokes it each minute, and an EventBridge rule invokes
// it when a task of an agent has ended.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/rollouts"
	"github.com/slipway-run/slipway/internal/jobs/reconcile"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs"
)

// sweepAge is the age at which a transaction that has not ended is considered dead.
const sweepAge = time.Hour

func main() { lambdahost.Start(stack.Function(open, stack.NeedEngine, rollouts.Need)) }

func open(s *stack.Stack) (lambdahost.Function, error) {
	s.Patient = true
	of := rollouts.Of(s)
	return lambdahost.Schedule(func(ctx context.Context) error {
		work, err := of.Rollout(ctx)
		if err != nil {
			return err
		}
		reconciler := reconcile.Reconciler{
			Threads: s.Threads(), Crons: s.Crons(), Runs: s.Runs(), Rollout: work, Webhooks: s.Webhooks(), Now: clock.System, Log: s.Log,
			Listeners: s.Listeners(), Ends: of.CollectHostExits,
			Sweep: func(ctx context.Context) error { return errors.Join(s.Table().Sweep(ctx, sweepAge), of.Sweep(ctx)) },
		}
		return reconciler.Once(ctx, clock.System())
	}, map[string]func(context.Context, json.RawMessage) error{ecs.TaskStateChange: of.HandleTaskStopped}, s.Log), nil
}
