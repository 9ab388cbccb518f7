// Command runner works on runs: it invokes the agent and writes its answer. The state machine
// run invokes it.
package main

import (
	"context"
	"encoding/json"

	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/agents"
	"github.com/slipway-run/slipway/internal/host/stack/runners"
)

func main() { lambdahost.Start(stack.Function(open, stack.NeedEngine, agents.NeedTarget)) }

func open(s *stack.Stack) (lambdahost.Function, error) {
	s.Patient = true
	of := runners.Of(s)
	return lambdahost.Task(func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
		work, err := of.Runner(ctx)
		if err != nil {
			return nil, err
		}
		ctx, sent := s.Sending(ctx)
		defer sent()
		return work.Task(ctx, input)
	}, s.Log), nil
}
