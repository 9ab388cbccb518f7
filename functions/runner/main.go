// Command runner works on runs: it invokes the agent and writes its answer. The state machine
// run invokes it.
package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"

	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/agents"
	"github.com/slipway-run/slipway/internal/host/stack/runners"
)

func main() { lambdahost.Start(open) }

func open(log *slog.Logger) (lambdahost.Function, error) {
	s, err := stack.Open(os.Getenv, log, stack.NeedTable, stack.NeedEngine, stack.NeedKey, agents.NeedTarget)
	if err != nil {
		return nil, err
	}
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
	}, log), nil
}
