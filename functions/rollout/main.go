// Command rollout performs the steps of rollouts, restarts and teardowns. The state machines
// rollout, restart and teardown invoke it.
package main

import (
	"context"
	"encoding/json"

	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/rollouts"
)

func main() { lambdahost.Start(stack.Function(open, stack.NeedEngine, rollouts.Need)) }

func open(s *stack.Stack) (lambdahost.Function, error) {
	s.Patient = true
	of := rollouts.Of(s)
	return lambdahost.Task(func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
		work, err := of.Rollout(ctx)
		if err != nil {
			return nil, err
		}
		ctx, sent := s.Sending(ctx)
		defer sent()
		return work.Task(ctx, input)
	}, s.Log), nil
}
