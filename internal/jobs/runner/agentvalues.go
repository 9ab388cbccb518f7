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
	// minAgentValues is the size in bytes from which values are sent as patches.
	minAgentValues = 32 << 10
	// maxAgentValues bounds the size of all remembered values, in bytes.
	maxAgentValues = 32 << 20
)

// agentValueCache remembers the values that each agent holds, so that long threads are sent as
// patches. An entry may be wrong: another process may have called the agent since, or the agent was
// restarted. An agent that holds other values answers so, and is sent all values.
type agentValueCache struct{ *lru.Cache[holder, sent] }

func newAgentValueCache() agentValueCache {
	return agentValueCache{lru.New[holder, sent](maxAgentValues)}
}

// holder is an agent of a revision, which holds values of a thread. Another revision may have the
// address later, and not know what a patch is.
type holder struct {
	revision, agent string
	thread          thread.Ref
}

// sent are the values that an invocation carried.
type sent struct {
	base    graph.Base
	carried *state.Values
}

// ask invokes the agent with all that it needs for an attempt, or what of that is new to it.
func (r *Runner) ask(ctx context.Context, attempt *run.Attempt, release compute.Ref, endpoint compute.Endpoint) (*graph.Stream, error) {
	asked := invocation(attempt)
	if r.ServerURL != nil {
		asked.ServerURL = r.ServerURL(attempt.Run.Deployment)
	}
	by := holder{release.Revision, endpoint.URL, attempt.Run.Ref.Ref}
	before, known := r.values.Get(by)
	r.values.Drop(by)
	if attempt.State.Values.Size() < minAgentValues {
		asked.State.Values = attempt.State.Values.JSON()
		return r.Graph.Invoke(ctx, endpoint, asked)
	}
	now := sent{graph.Base{RunID: asked.RunID, Attempt: asked.Attempt}, attempt.State.Values.Snapshot()} // the attempt goes on with its own
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

// errNotHeld means that the agent has to be sent everything.
var errNotHeld = errors.New("the agent does not hold the values")

// askSince invokes the agent with what is new since the values that it holds. An answer that does
// not say that the agent holds values again is not taken: it has not looked at what was sent.
func (r *Runner) askSince(ctx context.Context, endpoint compute.Endpoint, asked graph.Invocation, before, now sent) (*graph.Stream, error) {
	patch, err := json.Marshal(now.carried.Since(before.carried))
	if err != nil {
		return nil, fmt.Errorf("encode what is new of the values: %w", err)
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
