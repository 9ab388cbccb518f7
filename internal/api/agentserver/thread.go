package agentserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/agentserver/access"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

var null = json.RawMessage("null")

// object returns a JSON object with the members.
func object(members map[string]any) json.RawMessage { return record.Encode(members) }

// CreateThread creates a thread.
func (s server) CreateThread(ctx context.Context, request CreateThreadRequestObject) (CreateThreadResponseObject, error) {
	body := optional.Or(request.Body, model.ThreadCreate{})
	ref := threadRef(ctx, optional.Text(body.ThreadID))
	if len(body.Supersteps) > 0 {
		if _, err := s.graphOfThread(ctx, "", state.Present(body.Metadata)); err != nil {
			return nil, err
		}
	}
	ttl, err := model.ReadTTL(body.TTL)
	if err != nil {
		return nil, err
	}
	keep := body.IfExists != nil && *body.IfExists == model.IfExistsDoNothing
	t, created, err := s.newThread(ctx, ref, state.Present(body.Metadata), cmp.Or(ttl, served(ctx).ThreadTTL()), keep)
	if err != nil {
		return nil, err
	}
	if t.Lock.Run == "" && t.Lock.Checkpoint < 0 {
		if len(body.Supersteps) == 0 {
			return CreateThread200JSONResponse(model.ShowThread(t)), nil
		}
		if err := s.createFirstState(ctx, t, created, supersteps(body.Supersteps)); err != nil {
			return nil, err
		}
	}
	shown, err := s.thread(ctx, t.Ref)
	return CreateThread200JSONResponse(shown), err
}

// createFirstState makes the first state of a thread. If the state is refused, and the request has
// created the thread, the thread is deleted.
func (s server) createFirstState(ctx context.Context, t thread.Thread, created bool, steps []graph.Superstep) error {
	_, err := s.update(ctx, t, thread.Newest, nil, steps)
	if err != nil && created {
		err = errors.Join(err, s.deleteCreated(ctx, t))
	}
	return err
}

// deleteCreated deletes a thread that a refused request has made, even when the client has gone:
// the same request may be sent again with the same id. A thread that another request has used since
// stays.
func (s server) deleteCreated(ctx context.Context, created thread.Thread) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), disconnectLimit)
	defer stop()
	return s.Threads.DeleteCreated(ctx, created)
}

// GetThread reads a thread with its newest values.
func (s server) GetThread(ctx context.Context, request GetThreadRequestObject) (GetThreadResponseObject, error) {
	ref := threadRef(ctx, request.ThreadID)
	shown, err := s.thread(ctx, ref)
	if err == nil {
		err = s.showTTL(ctx, ref, &shown, request.Params.Include)
	}
	return GetThread200JSONResponse(shown), err
}

// CopyThread makes a thread with the state and history of another.
func (s server) CopyThread(ctx context.Context, request CopyThreadRequestObject) (CopyThreadResponseObject, error) {
	t, err := s.Runs.Seal(ctx, threadRef(ctx, request.ThreadID))
	if err != nil {
		return nil, err
	}
	if _, t.Metadata, err = s.also(ctx, access.Of("threads:create"), map[string]any{memberMetadata: t.Metadata}); err != nil {
		return nil, err
	}
	copied, err := s.Threads.Copy(ctx, t, served(ctx).ThreadTTL())
	if err != nil {
		return nil, err
	}
	shown, err := s.whole(ctx, copied)
	return CopyThread200JSONResponse(shown), err
}

func (s server) thread(ctx context.Context, ref thread.Ref) (model.Thread, error) {
	t, err := s.Threads.Get(ctx, ref)
	if err == nil {
		err = t.Usable()
	}
	if err != nil {
		return model.Thread{}, err
	}
	return s.whole(ctx, t)
}

// whole returns a thread that was read in the form that the interface has, with its newest
// values.
func (s server) whole(ctx context.Context, t thread.Thread) (model.Thread, error) {
	t, state, err := s.Runs.StateOf(ctx, t)
	if err != nil {
		return model.Thread{}, err
	}
	shown := model.ShowThread(t)
	if state.At.Number >= 0 {
		shown.Values = state.Values.JSON()
		shown.StateUpdatedAt = new(clock.Format(state.At.Created))
	}
	shown.Error, err = s.threadError(ctx, t)
	return shown, err
}

// threadError returns why the run did not succeed of which the thread's status tells; null if the
// run succeeded, or was deleted or rolled back.
func (s server) threadError(ctx context.Context, t thread.Thread) (json.RawMessage, error) {
	if t.IdleView.Run == "" || (t.Status != thread.StatusError && t.Status != thread.StatusInterrupted) {
		return null, nil
	}
	last, err := s.Runs.Get(ctx, run.Ref{Ref: t.Ref, Run: t.IdleView.Run})
	switch {
	case fault.Is(err, fault.NotFound):
		return null, nil
	case err != nil:
		return nil, err
	case last.Status == run.Interrupted && last.Failure == nil:
		return record.Encode(run.Failure{Name: "UserInterrupt", Message: cmp.Or(string(last.CancelReason), "The run was cancelled.")}), nil
	}
	return record.Encode(last.Failure), nil
}

func threadRef(ctx context.Context, threadID string) thread.Ref {
	d := served(ctx)
	return thread.Ref{Workspace: d.Workspace, Deployment: d.Deployment, Thread: strings.ToLower(threadID)}
}

// PatchThread changes a thread's metadata and time to live.
func (s server) PatchThread(ctx context.Context, request PatchThreadRequestObject) (PatchThreadResponseObject, error) {
	ttl, err := model.ReadTTL(request.Body.TTL)
	if err != nil {
		return nil, err
	}
	ref := threadRef(ctx, request.ThreadID)
	t, err := s.Threads.Patch(ctx, ref, thread.Patch{Metadata: state.Present(request.Body.Metadata), TTL: ttl})
	if err != nil {
		return nil, err
	}
	for preference := range strings.SplitSeq(optional.Text(request.Params.Prefer), ",") {
		if strings.TrimSpace(preference) == "return=minimal" {
			return PatchThread204Response{}, nil
		}
	}
	shown, err := s.whole(ctx, t)
	return PatchThread200JSONResponse(shown), err
}

// DeleteThread removes a thread, and thereby cancels its run in flight.
func (s server) DeleteThread(ctx context.Context, request DeleteThreadRequestObject) (DeleteThreadResponseObject, error) {
	return DeleteThread204Response{}, s.Threads.Delete(ctx, threadRef(ctx, request.ThreadID))
}

// PruneThreads deletes threads, or their history. Threads that do not exist are skipped.
func (s server) PruneThreads(ctx context.Context, request PruneThreadsRequestObject) (PruneThreadsResponseObject, error) {
	strategy := optional.Or(request.Body.Strategy, model.PruneStrategyDelete)
	pruned, seen := 0, map[string]bool{}
	for _, threadID := range request.Body.ThreadIds {
		ref := threadRef(ctx, threadID)
		if seen[ref.Thread] {
			continue
		}
		seen[ref.Thread] = true
		err := s.prune(ctx, ref, strategy)
		switch {
		case err == nil:
			pruned++
		case !fault.Is(err, fault.NotFound):
			return nil, err
		}
	}
	return PruneThreads200JSONResponse{PrunedCount: pruned}, nil
}

func (s server) prune(ctx context.Context, ref thread.Ref, strategy model.PruneStrategy) error {
	if err := s.visible(ctx, ref); err != nil {
		return err
	}
	if strategy == model.PruneStrategyDelete {
		return s.Threads.Delete(ctx, ref)
	}
	t, err := s.Runs.Seal(ctx, ref)
	if err != nil {
		return err
	}
	return s.Threads.Prune(ctx, t)
}

// showTTL adds the time to live to a thread, if the client asks for it and the thread has one.
func (s server) showTTL(ctx context.Context, ref thread.Ref, shown *model.Thread, include []string) error {
	if !slices.ContainsFunc(include, func(names string) bool { return slices.Contains(strings.Split(names, ","), "ttl") }) {
		return nil
	}
	ttl, err := s.Threads.TTL(ctx, ref)
	if err != nil || ttl == nil {
		return err
	}
	updated, err := clock.Parse(shown.UpdatedAt)
	shown.TTL = &model.ThreadTTLShown{
		Strategy: model.PruneStrategy(ttl.Strategy), TTLMinutes: ttl.Minutes, ExpiresAt: clock.Format(updated.Add(ttl.Duration())),
	}
	return err
}
