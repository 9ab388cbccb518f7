package agentserver

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/thread"
)

// GetThreadHistory lists a thread's states, newest first.
func (s server) GetThreadHistory(ctx context.Context, request GetThreadHistoryRequestObject) (GetThreadHistoryResponseObject, error) {
	asked := ThreadHistoryFind{Limit: request.Params.Limit}
	if before := request.Params.Before; before != nil && *before != "" {
		if asked.Before = json.RawMessage(*before); !json.Valid(asked.Before) || asked.Before[0] != '{' {
			asked.Before = record.Encode(*before)
		}
	}
	found, err := s.history(ctx, request.ThreadID, asked, "query")
	return shownStates(found), err
}

// FindThreadHistory lists a thread's states, newest first, as a body says.
func (s server) FindThreadHistory(ctx context.Context, request FindThreadHistoryRequestObject) (FindThreadHistoryResponseObject, error) {
	var asked ThreadHistoryFind
	if request.Body != nil {
		asked = *request.Body
	}
	found, err := s.history(ctx, request.ThreadID, asked, "body")
	return shownStates(found), err
}

func (s server) history(ctx context.Context, threadID string, asked ThreadHistoryFind, where string) ([]ThreadState, error) {
	ref := threadRef(ctx, threadID)
	at, err := placeOf(asked.Checkpoint, nil)
	if err != nil {
		return nil, err
	}
	if at.ID != "" || at.NS != "" {
		one, err := s.state(ctx, ref, at, false)
		return []ThreadState{one}, err
	}
	t, err := s.Runs.Seal(ctx, ref)
	if err != nil {
		return nil, err
	}
	before := int64(thread.Newest)
	if id, err := beforeOf(asked.Before, where); err != nil {
		return nil, err
	} else if id != "" {
		if before, err = s.Threads.Find(ctx, ref, id); err != nil {
			return nil, err
		}
	}
	limit := 10
	if asked.Limit != nil {
		limit = *asked.Limit
	}
	found, err := s.Threads.History(ctx, ref, before, limit, matching(threadID, present(asked.Metadata)))
	if err != nil {
		return nil, err
	}
	shown := make([]ThreadState, len(found))
	for i, c := range found {
		shown[i] = showState(t, c, nil)
	}
	return shown, nil
}

// beforeOf reads the id of a checkpoint in each of the forms in which clients send it: by itself, as a checkpoint, or as a configuration.
func beforeOf(raw json.RawMessage, where string) (string, error) {
	if present(raw) == nil {
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
	if c.ID == "" {
		return c.Configurable.ID, nil
	}
	return c.ID, nil
}

// matching returns whether a checkpoint's metadata has all members of the filter; nil for all.
func matching(threadID string, filter json.RawMessage) func(thread.Checkpoint) bool {
	var wanted map[string]any
	if filter == nil || json.Unmarshal(filter, &wanted) != nil || len(wanted) == 0 {
		return nil
	}
	return func(c thread.Checkpoint) bool {
		var has map[string]any
		return json.Unmarshal(record.Encode(metadataOf(threadID, c)), &has) == nil && contains(has, wanted)
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
