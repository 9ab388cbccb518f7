package agentserver

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/record/record"
)

// GetThreadHistory lists a thread's states, newest first.
func (s server) GetThreadHistory(ctx context.Context, request GetThreadHistoryRequestObject) (GetThreadHistoryResponseObject, error) {
	query := model.ThreadHistoryFind{Limit: request.Params.Limit}
	if before := request.Params.Before; before != nil && *before != "" {
		if query.Before = json.RawMessage(*before); !json.Valid(query.Before) || query.Before[0] != '{' {
			query.Before = record.Encode(*before)
		}
	}
	states, err := s.history(ctx, request.ThreadID, query, "query")
	return statesAnswer{model.ShownStates{States: states, Selected: request.Params.Select}}, err
}

// FindThreadHistory lists a thread's states, newest first, with the filters of a body.
func (s server) FindThreadHistory(ctx context.Context, request FindThreadHistoryRequestObject) (FindThreadHistoryResponseObject, error) {
	query := optional.Or(request.Body, model.ThreadHistoryFind{})
	query.Limit = new(optional.Or(query.Limit, 1))
	states, err := s.history(ctx, request.ThreadID, query, "body")
	return statesAnswer{model.ShownStates{States: states, Selected: query.Select}}, err
}

func (s server) history(ctx context.Context, threadID string, query model.ThreadHistoryFind, where string) ([]model.ThreadState, error) {
	ref := threadRef(ctx, threadID)
	at, err := model.ReadCheckpoint(query.Checkpoint, nil)
	if err != nil {
		return nil, err
	}
	limit := optional.Or(query.Limit, 10)
	if at.NS != "" {
		return s.subgraphStates(ctx, ref, at, query, limit, where)
	}
	if at.ID != "" {
		one, err := s.state(ctx, ref, at, false)
		return []model.ThreadState{one}, err
	}
	t, err := s.Runs.Seal(ctx, ref)
	if err != nil {
		return nil, err
	}
	before := int64(thread.Newest)
	if id, err := beforeOf(query.Before, where); err != nil {
		return nil, err
	} else if id != "" {
		if before, err = s.Threads.Find(ctx, ref, id); err != nil {
			return nil, err
		}
	}
	snapshots, err := s.Threads.History(ctx, ref, before, limit, matching(threadID, state.Present(query.Metadata)))
	return web.ShowAll(snapshots, func(c thread.Snapshot) model.ThreadState { return model.ShowState(t, c, nil) }), err
}

// subgraphStates lists the states of a subgraph, newest first.
func (s server) subgraphStates(ctx context.Context, ref thread.Ref, at model.CheckpointRef, query model.ThreadHistoryFind, limit int, where string) ([]model.ThreadState, error) {
	before, err := beforeOf(query.Before, where)
	if err != nil {
		return nil, err
	}
	wanted := thread.Wanted{Before: before, Limit: limit}
	if matches := matchingText(state.Present(query.Metadata)); matches != nil {
		wanted.Match = func(c thread.Subgraph) bool { return matches(c.Metadata) }
	}
	subgraphs, err := s.subgraphHistory(ctx, ref, at, wanted)
	return web.ShowAll(subgraphs, func(c thread.Subgraph) model.ThreadState {
		return model.ShowSubgraph(ref.Thread, c, nil)
	}), err
}

// beforeOf reads the id of a checkpoint in each of the forms in which clients send it: by itself,
// as a checkpoint, or as a configuration.
func beforeOf(raw json.RawMessage, where string) (string, error) {
	if state.Present(raw) == nil {
		return "", nil
	}
	var id string
	if json.Unmarshal(raw, &id) == nil {
		return id, nil
	}
	var c struct {
		ID           string `json:"checkpoint_id"`
		Configurable struct {
			ID string `json:"checkpoint_id"`
		} `json:"configurable"`
	}
	if err := json.Unmarshal(raw, &c); err != nil || (c.ID == "" && c.Configurable.ID == "") {
		return "", fault.Shape(fault.Detail{Loc: []any{where, "before"}, Msg: "Input should be the id of a checkpoint, or have it as checkpoint_id", Type: "value_error"})
	}
	return cmp.Or(c.ID, c.Configurable.ID), nil
}

// matching returns a function that reports whether a checkpoint's metadata has all members of
// the filter; nil if all checkpoints match.
func matching(threadID string, filter json.RawMessage) func(thread.Checkpoint) bool {
	matches := matchingText(filter)
	if matches == nil {
		return nil
	}
	return func(c thread.Checkpoint) bool { return matches(record.Encode(model.MetadataOf(threadID, c))) }
}

func matchingText(filter json.RawMessage) func(json.RawMessage) bool {
	var wanted map[string]any
	if filter == nil || json.Unmarshal(filter, &wanted) != nil || len(wanted) == 0 {
		return nil
	}
	return func(metadata json.RawMessage) bool {
		var has map[string]any
		return json.Unmarshal(metadata, &has) == nil && contains(has, wanted)
	}
}

func contains(has, wanted map[string]any) bool {
	for name, value := range wanted {
		inner, isObject := value.(map[string]any)
		if within, ok := has[name].(map[string]any); ok && isObject {
			if !contains(within, inner) {
				return false
			}
		} else if !reflect.DeepEqual(has[name], value) {
			return false
		}
	}
	return true
}
