package agentserver

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/run"
	"github.com/slipway-run/slipway/internal/thread"
)

var (
	emptyObject = json.RawMessage("{}")
	null        = json.RawMessage("null")
)

// object is a JSON object with the members.
func object(members map[string]any) json.RawMessage { return record.Encode(members) }

// CreateThread creates a thread.
func (s server) CreateThread(ctx context.Context, request CreateThreadRequestObject) (CreateThreadResponseObject, error) {
	var asked ThreadCreate
	if request.Body != nil {
		asked = *request.Body
	}
	ref := threadRef(ctx, "")
	if id := asked.ThreadID; id != nil {
		ref.Thread = strings.ToLower(*id)
	}
	keep := asked.IfExists != nil && *asked.IfExists == IfExistsDoNothing
	t, err := s.Threads.Create(ctx, ref, present(asked.Metadata), keep)
	if err != nil {
		return nil, err
	}
	if t.Lock.Run == "" {
		return CreateThread200JSONResponse(showThread(t)), nil
	}
	found, err := s.thread(ctx, ref)
	return CreateThread200JSONResponse(found), err
}

// GetThread reads a thread with its newest values.
func (s server) GetThread(ctx context.Context, request GetThreadRequestObject) (GetThreadResponseObject, error) {
	found, err := s.thread(ctx, threadRef(ctx, request.ThreadID))
	return GetThread200JSONResponse(found), err
}

func (s server) thread(ctx context.Context, ref thread.Ref) (Thread, error) {
	t, state, err := s.Runs.State(ctx, ref)
	if err != nil {
		return Thread{}, err
	}
	shown := showThread(t)
	if state.At.Number >= 0 {
		shown.Values = state.Values.JSON()
		updated := clock.Format(state.At.Created)
		shown.StateUpdatedAt = &updated
	}
	if t.Status == thread.StatusError {
		failed, err := s.Runs.Get(ctx, run.Ref{Ref: t.Ref, Run: t.Lock.Run})
		if err != nil {
			return Thread{}, err
		}
		shown.Error = record.Encode(failed.Failure)
	}
	return shown, nil
}

// GetThreadState reads a thread's newest state.
func (s server) GetThreadState(ctx context.Context, request GetThreadStateRequestObject) (GetThreadStateResponseObject, error) {
	t, state, err := s.Runs.State(ctx, threadRef(ctx, request.ThreadID))
	if err != nil {
		return nil, err
	}
	shown := ThreadState{
		Values: state.Values.JSON(), Next: []string{}, Tasks: []ThreadTask{}, Interrupts: questions(t.Interrupts), Metadata: emptyObject,
	}
	if state.At.Number >= 0 {
		created := clock.Format(state.At.Created)
		shown.CreatedAt = &created
		shown.Checkpoint = checkpoint(t.Thread, state.At.ID)
		shown.ParentCheckpoint = checkpoint(t.Thread, state.At.ParentID)
		shown.Metadata = object(map[string]any{
			"step": state.At.Step(), "source": state.At.Source, "run_id": state.At.Run, "thread_id": t.Thread,
		})
	}
	return GetThreadState200JSONResponse(shown), nil
}

// showThread is a thread as the interface has it, without its values.
func showThread(t thread.Thread) Thread {
	return Thread{
		ThreadID:   t.Thread,
		Status:     ThreadStatus(t.Status),
		Metadata:   t.Metadata,
		Config:     emptyObject,
		Values:     null,
		Error:      null,
		Interrupts: interrupts(t.Interrupts),
		CreatedAt:  clock.Format(t.Created),
		UpdatedAt:  clock.Format(t.Updated),
	}
}

func interrupts(raw json.RawMessage) map[string][]Interrupt {
	byTask := map[string][]Interrupt{}
	if err := json.Unmarshal(raw, &byTask); err != nil {
		panic("agentserver: interrupts were stored as an object: " + err.Error())
	}
	return byTask
}

// questions are the interrupts of all tasks, in an order that is always the same.
func questions(raw json.RawMessage) []Interrupt {
	all := []Interrupt{}
	for _, asked := range interrupts(raw) {
		all = append(all, asked...)
	}
	slices.SortStableFunc(all, func(a, b Interrupt) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

func checkpoint(threadID, checkpointID string) *Checkpoint {
	if checkpointID == "" {
		return nil
	}
	namespace := ""
	return &Checkpoint{ThreadID: &threadID, CheckpointNs: &namespace, CheckpointID: &checkpointID, CheckpointMap: null}
}

func threadRef(ctx context.Context, threadID string) thread.Ref {
	d := served(ctx)
	return thread.Ref{Workspace: d.Workspace, Deployment: d.Deployment, Thread: strings.ToLower(threadID)}
}

// present is nil for JSON that is absent or null.
func present(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}
