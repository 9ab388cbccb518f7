package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/lru"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

const (
	// minAgentValues is the size in bytes from which on values are sent as patches.
	minAgentValues = 32 << 10
	// maxAgentValues bounds the size of all remembered values, in bytes.
	maxAgentValues = 32 << 20
)

// agentValueCache remembers the values that each agent holds, so that the values of long
// threads are sent as patches. A run on a thread of 1 MiB then sends what is new only, and takes
// 1.5 MB of memory in place of 5.9 MB (BenchmarkRunOnALongThread). An entry may be wrong: another
// process may have called the agent since, or the agent was restarted. An agent that holds other
// values says so in its response, and all values are sent to it.
type agentValueCache struct{ *lru.Cache[holder, sent] }

func newAgentValueCache() agentValueCache {
	return agentValueCache{lru.New[holder, sent](maxAgentValues)}
}

// holder is an agent of a revision that holds values of a thread. Another revision may have
// the same address later, and may not support patches.
type holder struct {
	revision, agent string
	thread          thread.Ref
}

// sent are the values that were sent with an invocation.
type sent struct {
	base    graph.Base
	carried state.Values
}

// ask invokes the agent with all data that it needs for an attempt. It sends the values as a
// patch if the agent holds earlier values.
func (r *Runner) ask(ctx context.Context, attempt *run.Attempt, release compute.Ref, endpoint compute.Endpoint) (*graph.Stream, error) {
	asked := invocation(attempt)
	if r.ServerURL != nil {
		asked.ServerURL = r.ServerURL(attempt.Run.Deployment)
	}
	by := holder{release.Revision, endpoint.URL, attempt.Run.Ref.Ref}
	before, known := r.values.Get(by)
	r.values.Drop(by)
	if attempt.Log.Values.Size() < minAgentValues {
		asked.State.Values = attempt.Log.Values.JSON()
		return r.Graph.Invoke(ctx, endpoint, asked)
	}
	now := sent{graph.Base{RunID: asked.RunID, Attempt: asked.Attempt}, attempt.Log.Values}
	var stream *graph.Stream
	err := errNotHeld
	if known {
		stream, err = r.askSince(ctx, endpoint, asked, before, now)
	}
	if errors.Is(err, errNotHeld) {
		asked.State.Values = now.carried.JSON()
		stream, err = r.Graph.Invoke(ctx, endpoint, asked)
	}
	if err == nil && stream.HoldsValues {
		r.values.Put(by, now, now.carried.Memory())
	}
	return stream, err
}

// errNotHeld means that all values must be sent to the agent.
var errNotHeld = errors.New("the agent does not hold the values")

// askSince invokes the agent with the change since the values that it holds. It does not
// accept a response without the statement that the agent holds the values again: such an agent
// has ignored the patch.
func (r *Runner) askSince(ctx context.Context, endpoint compute.Endpoint, asked graph.Invocation, before, now sent) (*graph.Stream, error) {
	patch, err := json.Marshal(now.carried.Since(before.carried))
	if err != nil {
		return nil, fmt.Errorf("encode the changes of the values: %w", err)
	}
	if len(patch) > now.carried.Size()/2 {
		return nil, errNotHeld
	}
	asked.State.Base, asked.State.Patch = &before.base, patch
	stream, err := r.Graph.Invoke(ctx, endpoint, asked)
	if refused, ok := errors.AsType[*graph.RefusedError](err); ok && refused.LacksBase() {
		return nil, errNotHeld
	}
	if err == nil && !stream.HoldsValues {
		return nil, errors.Join(errNotHeld, stream.Close())
	}
	return stream, err
}
