package runner

import (
	"slices"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// newInvocation returns the invocation of the agent for an attempt, without the values.
func newInvocation(a *run.Attempt) graph.Invocation {
	invocation := graph.Invocation{
		Operation:       graph.OperationRun,
		Graph:           a.Run.Graph,
		ThreadID:        a.Run.Thread,
		RunID:           a.Run.Run,
		Attempt:         int(a.Run.Attempt),
		Input:           state.OrNull(a.Run.GraphInput().JSON()),
		Command:         state.OrNull(a.Run.Command),
		State:           graph.State{Values: a.Log.Values.JSON(), Checkpoint: a.Checkpoints(), Pending: a.Pending},
		Config:          state.OrNull(a.Run.Config),
		Context:         state.OrNull(a.Run.Context),
		AssistantID:     a.Run.AssistantID,
		Metadata:        a.Run.Metadata,
		Tracer:          a.Run.Tracer,
		StreamMode:      agentModes(a.Run.StreamModes, a.Run.StreamSubgraphs),
		InterruptBefore: a.Run.InterruptBefore,
		InterruptAfter:  a.Run.InterruptAfter,
		StreamSubgraphs: a.Run.StreamSubgraphs,
		Durability:      durability(a.Run.Durability),
	}
	if a.Run.Caller != nil {
		invocation.Caller = *a.Run.Caller
	}
	return invocation
}

// durability translates the durability that a client wants into the durability of the agent. The
// state and the values that readers see are made from the agent's checkpoints, so the agent sends
// its checkpoints also if the client wants them at the run's end only.
func durability(wanted string) string {
	if wanted == "exit" {
		return "async"
	}
	return wanted
}

// agentModes translates the modes that readers want into the modes that the agent must send.
// Updates are always among them, because the state is made from them. Values are made from the
// state, so only the values of subgraphs are requested.
func agentModes(wanted []string, subgraphs bool) []string {
	modes := []string{graph.EventUpdates}
	for _, mode := range wanted {
		switch mode {
		case graph.EventValues:
			if !subgraphs {
				continue
			}
		case "messages-tuple":
			mode = graph.EventMessages
		}
		if !slices.Contains(modes, mode) { // updates are in the list already
			modes = append(modes, mode)
		}
	}
	return modes
}
