package agentserver

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/base/optional"
)

// CreateStatelessRun creates a run on a thread of its own and returns at once.
func (s server) CreateStatelessRun(ctx context.Context, request CreateStatelessRunRequestObject) (CreateStatelessRunResponseObject, error) {
	created, err := s.createStateless(ctx, request.Body, run.Request{Notes: web.StoreAnswer(ctx, func(r run.Run) (web.Send, string, int64, error) {
		return showStateless(r).VisitCreateStatelessRunResponse, "", web.Untagged, nil
	})})
	return showStateless(created), err
}

func showStateless(r run.Run) CreateStatelessRun200JSONResponse {
	return CreateStatelessRun200JSONResponse{Body: model.ShowRun(r), Headers: CreateStatelessRun200ResponseHeaders{ContentLocation: location(r.Ref)}}
}

// CreateStatelessRunWait creates a run on a thread of its own and answers with its final values.
func (s server) CreateStatelessRunWait(ctx context.Context, request CreateStatelessRunWaitRequestObject) (CreateStatelessRunWaitResponseObject, error) {
	created, err := s.createStateless(ctx, request.Body, run.Request{})
	if err != nil {
		return nil, err
	}
	return s.waitFor(ctx, created, request.Body), nil
}

// CreateStatelessRunStream creates a run on a thread of its own and streams its events.
func (s server) CreateStatelessRunStream(ctx context.Context, request CreateStatelessRunStreamRequestObject) (CreateStatelessRunStreamResponseObject, error) {
	created, err := s.createStateless(ctx, request.Body, run.Request{Streamed: true})
	if err != nil {
		return nil, err
	}
	return s.follow(ctx, created, request.Body), nil
}

// CreateStatelessRuns creates runs, each on a thread of its own: all runs or, as far as
// possible, no run. If a creation fails, the runs before it are deleted, because the client
// never learns their ids.
func (s server) CreateStatelessRuns(ctx context.Context, request CreateStatelessRunsRequestObject) (CreateStatelessRunsResponseObject, error) {
	bodies := *request.Body
	requests, owned := make([]run.Request, len(bodies)), make([]json.RawMessage, len(bodies))
	for i := range bodies {
		var err error
		owned[i] = ownMetadata(&bodies[i])
		if requests[i], err = s.statelessRequest(ctx, &bodies[i]); err != nil {
			return nil, inBatch(i, err)
		}
	}
	shown := make(CreateStatelessRuns200JSONResponse, len(bodies))
	var created []thread.Ref
	for i := range bodies {
		next, err := s.createAlone(ctx, requests[i], owned[i])
		if err != nil {
			return nil, errors.Join(err, s.takeBack(ctx, created...))
		}
		created = append(created, next.Ref.Ref)
		shown[i] = model.ShowRun(next)
	}
	return shown, nil
}

// takeBack deletes the threads of runs that have threads of their own, even when the client has
// gone.
func (s server) takeBack(ctx context.Context, created ...thread.Ref) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), disconnectLimit)
	defer stop()
	var failures []error
	for _, ref := range created {
		if err := s.Threads.Delete(ctx, ref); !fault.Is(err, fault.NotFound) {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// createStateless is create for a run on a thread of its own.
func (s server) createStateless(ctx context.Context, body *model.RunCreate, also run.Request) (run.Run, error) {
	owned := ownMetadata(body)
	request, err := s.statelessRequest(ctx, body)
	if err != nil {
		return run.Run{}, err
	}
	request.Notes, request.Streamed = also.Notes, also.Streamed
	return s.createAlone(ctx, request, owned)
}

// statelessRequest checks a request to run on a thread of its own.
func (s server) statelessRequest(ctx context.Context, body *model.RunCreate) (run.Request, error) {
	request, err := s.request(ctx, body)
	if err == nil && resumes(request.Command) {
		err = fault.New(fault.Invalid, "command.resume: nothing waits for an answer on a new thread. Create the run on the thread that waits.")
	}
	request.ID = id.New(s.Now().Add(request.After))
	request.Temporary = optional.Or(body.OnCompletion, model.OnCompletionDelete) != model.OnCompletionKeep
	return request, err
}

// resumes reports whether a command answers a question.
func resumes(command json.RawMessage) bool {
	var members struct{ Resume any }
	return json.Unmarshal(command, &members) == nil && members.Resume != nil
}

// ownMetadata returns the metadata for the thread that a run creates. It is the metadata of the
// run, as the repository's own authentication has left it, so that the run's user finds the
// thread. It is read before the metadata of the assistant is laid under it.
func ownMetadata(body *model.RunCreate) json.RawMessage { return state.Present(body.Metadata) }

// createAlone creates a thread and its first run, which have the same id: so the server finds
// the run without the id of its thread.
func (s server) createAlone(ctx context.Context, request run.Request, metadata json.RawMessage) (run.Run, error) {
	ref := threadRef(ctx, request.ID)
	var t thread.Thread
	var err error
	if request.Temporary {
		t, err = s.Threads.NewTemporary(ref, metadata)
	} else {
		t, err = s.Threads.Create(ctx, ref, metadata, served(ctx).ThreadTTL(), false)
	}
	if err != nil {
		return run.Run{}, err
	}
	created, err := s.Runs.CreateOn(ctx, t, request)
	if err != nil {
		err = errors.Join(err, s.takeBack(ctx, ref))
	}
	return created, err
}

// cancels reports whether a client wants its run to end with the connection that waits for it.
func cancels(body *model.RunCreate) bool {
	return optional.Or(body.OnDisconnect, "") == model.OnDisconnectCancel
}

// delay is how long a run waits before it may start.
func delay(body *model.RunCreate) time.Duration {
	return time.Duration(optional.Or(body.AfterSeconds, 0) * float64(time.Second)).Truncate(time.Microsecond)
}
