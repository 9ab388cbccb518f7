// Command runner works on runs: it invokes the agent and writes its answer. The state machine
// run invokes it.
package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"sync"
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
	of := &worker{Agents: agents.Of(s)}
	return lambdahost.Task(func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
		work, err := of.runner(ctx)
		if err != nil {
			return nil, err
		}
		ctx, sent := s.Sending(ctx)
		defer sent()
		return work.Task(ctx, input)
	}, log), nil
}

// worker makes the runner of the process with its first task, because the data key may not be
// readable before. The runner remembers the limits of releases, and its bounds are those of all
// tasks of the process together.
type worker struct {
	*agents.Agents

	mu   sync.Mutex
	made *runner.Runner
}

func (w *worker) runner(ctx context.Context) (*runner.Runner, error) {
	target, err := w.Target(ctx)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.made == nil {
		w.made = runner.New(runner.Config{
			ServerURL: serverURL(w.BaseURL),
			Runs:      w.Runs(), Deployments: w.Deployments(), Target: target, Graph: graph.NewClient(nil), Log: w.Log, Limits: w.Deployments().RunLimits,
			FlushInterval: flushInterval, UnwatchedInterval: unwatchedInterval,
		})
	}
	return w.made, nil
}

// serverURL returns the address of agent servers, if the API has an address of its own: a
// function cannot find out this address.
func serverURL(base string) func(string) string {
	if base == "" {
		return nil
	}
	return func(deployment string) string { return strings.TrimSuffix(base, "/") + "/d/" + deployment }
}
