package agentserver

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// askAgent asks an agent a question that belongs to no run, for a request of a workspace. A
// request that waits for long takes one of the workspace's places for connections.
func askAgent[T any](ctx context.Context, s server, workspace string, ask func(context.Context) (T, error)) (answer T, err error) {
	take := func(ctx context.Context) (leave func(), err error) { return s.mux.HoldPlace(ctx, workspace) }
	err = quota.Patiently(ctx, s.Log, s.Patience, take, func(ctx context.Context) (err error) {
		answer, err = ask(ctx)
		return err
	})
	return answer, err
}

// UpdateThreadState changes a thread's state as if a node had changed it.
func (s server) UpdateThreadState(ctx context.Context, request UpdateThreadStateRequestObject) (UpdateThreadStateResponseObject, error) {
	at, err := model.ReadCheckpoint(request.Body.Checkpoint, request.Body.CheckpointID)
	if err != nil {
		return nil, err
	}
	ref := threadRef(ctx, request.ThreadID)
	t, err := s.Runs.Seal(ctx, ref)
	if err != nil {
		return nil, err
	}
	number := int64(thread.Newest)
	if at.ID != "" {
		if number, err = s.Threads.Find(ctx, ref, at.ID); err != nil {
			return nil, err
		}
	}
	var named *model.CheckpointRef
	switch {
	case at.NS != "" && at.Of == "":
		// This is the subgraph's newest checkpoint behind the graph's checkpoint that the
		// agent gets. The agent would take an id with the namespace for the id of a checkpoint
		// of the subgraph.
		named = &model.CheckpointRef{NS: at.NS}
	case at.ID != "" || at.NS != "":
		named = &at
	}
	step := graph.Superstep{Updates: []graph.StateUpdate{{Values: state.OrNull(request.Body.Values), AsNode: optional.Text(request.Body.AsNode)}}}
	edit, err := s.update(ctx, t, number, named, []graph.Superstep{step})
	if err != nil {
		return nil, err
	}
	return UpdateThreadState200JSONResponse(model.ShowUpdated(t.Thread, edit.Log.At.ID, at.NS, edit.Within)), nil
}

func supersteps(sent []model.Superstep) []graph.Superstep {
	steps := make([]graph.Superstep, len(sent))
	for i, step := range sent {
		for _, u := range step.Updates {
			steps[i].Updates = append(steps[i].Updates, graph.StateUpdate{Values: state.OrNull(u.Values), Command: state.Present(u.Command), AsNode: optional.Text(u.AsNode)})
		}
	}
	return steps
}

// update changes a thread's state at a checkpoint, which may be the newest, and returns the
// change. A graph that keeps checkpoints makes the change itself, with its own reducers; it gets
// the name of the checkpoint, nil if the client has named none.
func (s server) update(ctx context.Context, t thread.Thread, number int64, named *model.CheckpointRef, steps []graph.Superstep) (*thread.Edit, error) {
	edit, err := s.Threads.Edit(ctx, t, number)
	if err != nil {
		return nil, err
	}
	graphID, err := s.graphOfThread(ctx, edit.Log.At.Graph, t.Metadata)
	if err != nil {
		return nil, err
	}
	keeps, err := s.keepsCheckpoints(ctx, edit.Log.At, graphID)
	switch {
	case err != nil:
	case keeps:
		err = s.updateByAgent(ctx, t, edit, graphID, named, steps)
	default:
		for _, step := range steps {
			if err = edit.Fold(graphID, step.Updates); err != nil {
				break
			}
		}
	}
	if err == nil {
		err = edit.Commit(ctx)
	}
	return edit, err
}

// keepsCheckpoints reports whether a graph makes changes of a state itself. After its first
// checkpoint of a thread, that checkpoint decides; before, the graph's description decides.
func (s server) keepsCheckpoints(ctx context.Context, at thread.Checkpoint, graphID string) (bool, error) {
	if at.Agent != nil || at.Folded {
		return at.Agent != nil, nil
	}
	description, err := s.describe(ctx)
	return description.Graphs[graphID].Checkpoints, err
}

func (s server) updateByAgent(ctx context.Context, t thread.Thread, edit *thread.Edit, graphID string, named *model.CheckpointRef, steps []graph.Superstep) error {
	if named != nil && named.NS != "" {
		edit.Log = edit.Log.Naming(map[string]string{named.NS: named.Of})
	}
	checkpoints, pending, err := edit.Before(ctx)
	if err != nil {
		return err
	}
	last, err := s.lastRun(ctx, t, graphID)
	if err != nil {
		return err
	}
	config := model.WithoutCheckpoint(last.Config, "run_id")
	if named != nil {
		config = model.WithCheckpoint(config, *named)
	}
	invocation := graph.Invocation{
		Graph: graphID, ThreadID: t.Thread, Attempt: 1, Input: null, Command: null, Config: state.OrNull(config), Context: state.OrNull(last.Context),
		AssistantID: last.AssistantID, Metadata: last.Metadata,
		State: graph.State{Values: edit.Log.Values.JSON(), Checkpoint: checkpoints, Pending: pending}, StreamMode: []string{graph.EventUpdates}, Supersteps: steps,
		Caller: *callerOf(ctx),
	}
	d := served(ctx)
	before := edit.Log.At.ID
	_, err = askAgent(ctx, s, d.Workspace, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.Agents.UpdateState(ctx, d.Workspace, d.Deployment, invocation, func(c graph.Checkpoint) error {
			if err := edit.Follow(graphID, c); err != nil {
				return fault.New(fault.Unavailable, "The agent's checkpoint cannot be kept: %v.", err)
			}
			return nil
		})
	})
	if err == nil && edit.Log.At.ID == before && edit.Within.ID == "" {
		return fault.New(fault.Unavailable, "The agent did not answer with a checkpoint.")
	}
	return err
}

// lastRun returns the request of the thread's newest run, if that was a run of the graph: a
// graph that is made for each call is made for a change of the state in the same way as for
// the run. Without such a run, the request is empty except for the thread's own metadata.
func (s server) lastRun(ctx context.Context, t thread.Thread, graphID string) (run.Request, error) {
	empty := run.Request{Payload: run.Payload{Metadata: t.Metadata}}
	if t.Lock.Run == "" {
		return empty, nil
	}
	last, err := s.Runs.Get(ctx, run.Ref{Ref: t.Ref, Run: t.Lock.Run})
	switch {
	case fault.Is(err, fault.NotFound), err == nil && last.Graph != graphID:
		return empty, nil
	case err != nil:
		return empty, err
	}
	return last.Request, nil
}

// graphOfThread finds the graph of a thread: the graph of its state, the graph that its
// metadata names, or the deployment's only graph.
func (s server) graphOfThread(ctx context.Context, of string, metadata json.RawMessage) (string, error) {
	d := served(ctx)
	var named struct {
		Graph string `json:"graph_id"`
	}
	if of == "" && len(metadata) > 0 && json.Unmarshal(metadata, &named) == nil {
		of = named.Graph
	}
	if d.Active == "" {
		return "", fault.New(fault.Unavailable, "Deployment ID %s has no deployed revision yet.", d.Deployment)
	}
	graphs, err := s.graphs(ctx)
	switch {
	case slices.Contains(graphs, of), len(graphs) == 0 && of != "":
		// The agent does not say which graphs it has.
		return of, nil
	case err != nil:
		return "", err
	case of == "" && len(graphs) == 1:
		return graphs[0], nil
	case of == "":
		return "", fault.New(fault.Invalid, "The thread has no graph yet. Run it first, or name one of the deployment's graphs as graph_id in its metadata.")
	}
	return "", fault.New(fault.Invalid, "The thread's graph %.64q is not a graph of the deployment.", of)
}
