package agentserver

import (
	"context"
	"net/http"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// GetThreadState reads a thread's newest state.
func (s server) GetThreadState(ctx context.Context, request GetThreadStateRequestObject) (GetThreadStateResponseObject, error) {
	threadState, err := s.state(ctx, threadRef(ctx, request.ThreadID), model.CheckpointRef{}, isTrue(request.Params.Subgraphs))
	return stateAnswer{model.ShownState{State: threadState, Selected: request.Params.Select}}, err
}

// GetThreadStateAt reads a thread's state at a checkpoint, given by its id.
func (s server) GetThreadStateAt(ctx context.Context, request GetThreadStateAtRequestObject) (GetThreadStateAtResponseObject, error) {
	threadState, err := s.state(ctx, threadRef(ctx, request.ThreadID), model.CheckpointRef{ID: request.CheckpointID}, isTrue(request.Params.Subgraphs))
	return stateAnswer{model.ShownState{State: threadState, Selected: request.Params.Select}}, err
}

// FindThreadState reads a thread's state at a checkpoint.
func (s server) FindThreadState(ctx context.Context, request FindThreadStateRequestObject) (FindThreadStateResponseObject, error) {
	at, err := model.ReadCheckpoint(&request.Body.Checkpoint, nil)
	if err != nil {
		return nil, err
	}
	threadState, err := s.state(ctx, threadRef(ctx, request.ThreadID), at, isTrue(request.Body.Subgraphs))
	return stateAnswer{model.ShownState{State: threadState, Selected: request.Body.Select}}, err
}

// state returns a thread's state at a checkpoint in the form that the interface has.
func (s server) state(ctx context.Context, ref thread.Ref, at model.CheckpointRef, subgraphs bool) (model.ThreadState, error) {
	if at.NS != "" {
		return s.subgraphState(ctx, ref, at, subgraphs)
	}
	t, snapshot, err := s.snapshot(ctx, ref, at)
	if err != nil {
		return model.ThreadState{}, err
	}
	var below map[string]thread.Subgraph
	if subgraphs && snapshot.Agent != nil {
		if below, err = s.Threads.Subgraphs(ctx, ref, snapshot.Agent.Number); err != nil {
			return model.ThreadState{}, err
		}
	}
	return model.ShowState(t, snapshot, below), nil
}

// snapshot reads a thread and its state at a checkpoint of the graph itself.
func (s server) snapshot(ctx context.Context, ref thread.Ref, at model.CheckpointRef) (thread.Thread, thread.Snapshot, error) {
	if at.ID == "" {
		t, state, err := s.Runs.State(ctx, ref)
		if err != nil {
			return t, thread.Snapshot{}, err
		}
		return t, state.Snapshot(), nil
	}
	t, err := s.Threads.Get(ctx, ref)
	if err != nil {
		return t, thread.Snapshot{}, err
	}
	number, err := s.Threads.Find(ctx, ref, at.ID)
	if err != nil {
		return t, thread.Snapshot{}, err
	}
	state, err := s.Threads.StateAt(ctx, ref, number)
	if err != nil {
		return t, thread.Snapshot{}, err
	}
	if number < 0 && t.Lock.Checkpoint >= 0 {
		return t, thread.Root(ref), nil
	}
	snapshot := state.Snapshot()
	snapshot.Newest = !t.Lock.Busy && number == t.Lock.Checkpoint
	snapshot.Results, err = s.Threads.ResultsAt(ctx, ref, snapshot.Checkpoint)
	return t, snapshot, err
}

// subgraphState returns the state of a subgraph at a checkpoint, or its newest state; with
// below, also the states of the subgraphs that its tasks run.
func (s server) subgraphState(ctx context.Context, ref thread.Ref, at model.CheckpointRef, below bool) (model.ThreadState, error) {
	subgraphs, err := s.subgraphHistory(ctx, ref, at, thread.Wanted{Limit: 1})
	if err != nil {
		return model.ThreadState{}, err
	}
	if len(subgraphs) == 0 {
		return model.ThreadState{}, fault.New(fault.NotFound, "There is no checkpoint of the subgraph %s there.", at.NS)
	}
	var inner map[string]thread.Subgraph
	if below {
		inner, err = s.Threads.Subgraphs(ctx, ref, subgraphs[0].Root)
	}
	return model.ShowSubgraph(ref.Thread, subgraphs[0], inner), err
}

// subgraphHistory reads checkpoints of a subgraph, newest first: the checkpoints behind the
// graph's checkpoint that the client names, or the checkpoints of the whole thread.
func (s server) subgraphHistory(ctx context.Context, ref thread.Ref, at model.CheckpointRef, wanted thread.Wanted) ([]thread.Subgraph, error) {
	wanted.NS, wanted.ID, wanted.Root = at.NS, at.Of, thread.Newest
	if at.ID == "" {
		if _, err := s.Runs.Seal(ctx, ref); err != nil {
			return nil, err
		}
		return s.Threads.SubgraphHistory(ctx, ref, wanted)
	}
	_, root, err := s.snapshot(ctx, ref, at)
	if err != nil || root.Agent == nil {
		return nil, err
	}
	wanted.Root = root.Agent.Number
	return s.Threads.SubgraphHistory(ctx, ref, wanted)
}

// stateAnswer answers with a state.
type stateAnswer struct{ model.ShownState }

// statesAnswer answers with a list of states.
type statesAnswer struct{ model.ShownStates }

// A state answers these operations, states answer those of the history.
func (s stateAnswer) VisitFindThreadStateResponse(w http.ResponseWriter) error    { return s.Write(w) }
func (s stateAnswer) VisitGetThreadStateAtResponse(w http.ResponseWriter) error   { return s.Write(w) }
func (s stateAnswer) VisitGetThreadStateResponse(w http.ResponseWriter) error     { return s.Write(w) }
func (s statesAnswer) VisitFindThreadHistoryResponse(w http.ResponseWriter) error { return s.Write(w) }
func (s statesAnswer) VisitGetThreadHistoryResponse(w http.ResponseWriter) error  { return s.Write(w) }
