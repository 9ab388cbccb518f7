// Package runners adds to a stack the runner of its function, which lasts as long as the process.
package runners

import (
	"context"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/agents"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs/metric"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// flushInterval and readerlessInterval bound the cost of a run's events: each write of up to a KB
// costs the same, and two writes are needed for each batch. The first event after a silence is
// written at once. A reader that comes later waits for the next write first.
const (
	flushInterval      = time.Second / 3
	readerlessInterval = time.Second
)

// silentHeartbeat is a little more than a third of the time after which a lease is renewed in a
// stack, because each look wakes the process. With a look each 5 s, a process with 256 waiting runs
// took 1.6 % of a processor, and at most 1.0 % with this.
const silentHeartbeat = 35 * time.Second

// Runners makes the runner. It is safe for concurrent use.
type Runners struct {
	*agents.Agents

	mu     sync.Mutex
	shared *runner.Runner
}

// Of returns the runners of a stack.
func Of(s *stack.Stack) *Runners { return &Runners{Agents: agents.Of(s)} }

// Runner returns the runner of the process, which remembers the limits of releases, and whose
// bounds are those of all tasks of the process together. The first task makes it, because the data
// key may not be readable before.
func (r *Runners) Runner(ctx context.Context) (*runner.Runner, error) {
	target, err := r.Target(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shared == nil {
		r.shared = runner.New(runner.Config{
			Busy:      r.busy(),
			ServerURL: agents.ServerURL(r.Stack),
			Runs:      r.Runs(), Deployments: r.Deployments(), Target: target, Graph: graph.NewClient(nil), Log: r.Log, ReadLimits: r.Deployments().RunLimits,
			FlushInterval: flushInterval, ReaderlessInterval: readerlessInterval, SilentHeartbeat: silentHeartbeat,
		})
	}
	return r.shared, nil
}

// busy writes the metric by which releases scale; nil if their place is not AWS.
func (r *Runners) busy() func(context.Context, compute.Ref, time.Duration) {
	if prefix := r.Get(agents.VariableNamePrefix); prefix != "" && !r.IsHosted() {
		return stack.Figures{Log: r.Log, Namespace: metric.Namespace(prefix), Now: clock.System}.Busy
	}
	return nil
}
