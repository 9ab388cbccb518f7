// Command runner works on runs: it invokes the agent and writes its answer. The state machine
// run invokes it.
package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/agents"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// flushInterval and unwatchedInterval bound the cost of a run's events: each write is a
// transaction, whatever its size. A reader that comes later waits for the next write first.
const (
	flushInterval     = 250 * time.Millisecond
	unwatchedInterval = time.Second
)

func main() { lambdahost.Start(open) }

func open(log *slog.Logger) (lambdahost.Function, error) {
	s, err := stack.Open(os.Getenv, log, stack.NeedTable, stack.NeedEngine, stack.NeedKey, agents.NeedTarget)
	if err != nil {
		return nil, err
	}
	s.Patient = true
	invoked, client := agents.Of(s), graph.NewClient(nil)
	return lambdahost.Task(func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
		target, err := invoked.Target(ctx)
		if err != nil {
			return nil, err
		}
		ctx, sent := s.Sending(ctx)
		defer sent()
		work := runner.New(runner.Config{
			ServerURL: serverURL(s.BaseURL),
			Runs:      s.Runs(), Deployments: s.Deployments(), Target: target, Graph: client, Log: log, Limits: s.Deployments().RunLimits,
			FlushInterval: flushInterval, UnwatchedInterval: unwatchedInterval,
		})
		return work.Task(ctx, input)
	}, log), nil
}

// serverURL returns the address of agent servers, if the API has an address of its own: a
// function cannot find out this address.
func serverURL(base string) func(string) string {
	if base == "" {
		return nil
	}
	return func(deployment string) string { return strings.TrimSuffix(base, "/") + "/d/" + deployment }
}
