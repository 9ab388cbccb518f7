package agentserver

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
)

// CancelRun ends a run that has not ended.
func (s server) CancelRun(ctx context.Context, request CancelRunRequestObject) (CancelRunResponseObject, error) {
	ref, action := runRef(ctx, request.ThreadID, request.RunID), actionOf(request.Params.Action)
	var err error
	switch {
	case request.Params.Reason == nil:
		err = s.Runs.Cancel(ctx, ref, action)
	case action == run.ActionInterrupt:
		err = s.Runs.CancelTaken(ctx, ref)
	default:
		err = fault.Shape(fault.Detail{Loc: []any{"query", "reason"}, Type: "value_error", Msg: "Input should be absent, unless the action is interrupt"})
	}
	if err != nil {
		return nil, err
	}
	if !isTrue(request.Params.Wait) {
		return CancelRun202Response{}, nil
	}
	if _, err := s.Runs.Seal(ctx, ref.Ref); err != nil {
		return nil, err
	}
	return CancelRun204Response{}, nil
}

func actionOf(action *model.CancelAction) run.Action {
	return run.Action(optional.Or(action, model.CancelActionInterrupt))
}

// CancelRuns ends the runs of a status, or some of a thread.
func (s server) CancelRuns(ctx context.Context, request CancelRunsRequestObject) (CancelRunsResponseObject, error) {
	body, action := request.Body, actionOf(request.Params.Action)
	byRun := body.ThreadID != nil || len(body.RunIds) > 0
	if (body.Status != nil) == byRun || (byRun && (body.ThreadID == nil || len(body.RunIds) == 0)) {
		return nil, fault.Shape(fault.Detail{
			Loc: []any{"body"}, Type: "value_error", Msg: "Input should have either status, or thread_id and run_ids",
		})
	}
	var anyCancelled bool
	var err error
	if byRun {
		anyCancelled, err = s.cancelOf(ctx, *body.ThreadID, body.RunIds, action)
	} else {
		d := served(ctx)
		anyCancelled, err = s.Runs.CancelDeployment(ctx, d.Workspace, d.Deployment, run.CancelScope(*body.Status), action, ownDecisionOf(ctx).filter)
	}
	if err == nil && !anyCancelled {
		err = run.NothingToCancel()
	}
	return CancelRuns204Response{}, err
}

// cancelOf ends runs of a thread, from the last to the first, so that no run begins because
// the runs before it are ended. Runs that have already ended stay as they are.
func (s server) cancelOf(ctx context.Context, threadID string, runs []string, action run.Action) (anyCancelled bool, err error) {
	for _, id := range slices.Backward(runs) {
		err := s.Runs.Cancel(ctx, runRef(ctx, threadID, id), action)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return anyCancelled, err
		}
		anyCancelled = anyCancelled || err == nil
	}
	return anyCancelled, nil
}

// DeleteRun deletes a run that has ended.
func (s server) DeleteRun(ctx context.Context, request DeleteRunRequestObject) (DeleteRunResponseObject, error) {
	return DeleteRun204Response{}, s.Runs.Delete(ctx, runRef(ctx, request.ThreadID, request.RunID))
}

// disconnectLimit is how long the server may take to cancel a run, or to delete the thread of a
// stateless run, after its client has gone.
const disconnectLimit = 10 * time.Second

// tie binds a run to a connection that waits for it.
type tie struct {
	// cancel says that the run is to end when the connection is lost.
	cancel bool
	// over says that the run has ended.
	over bool
}

// disconnected is called when a connection has ended. It cancels the run if its client wants this
// and the connection was lost before the run ended. The stop of a server does not count as such a
// loss.
func (s server) disconnected(ctx context.Context, ref run.Ref, t tie) {
	if !t.cancel {
		return
	}
	after, stop := context.WithTimeout(context.WithoutCancel(ctx), disconnectLimit)
	defer stop()
	if t.over {
		s.dismiss(after, ref)
		return
	}
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		return
	}
	if err := s.Runs.CancelOnDisconnect(after, ref); err != nil && !fault.Is(err, fault.NotFound) {
		s.Log.ErrorContext(after, "run was not cancelled when its client had gone", "run", ref.Run, "error", err)
	}
}

// comeBack is how long a client has to take an answer up again after its connection has ended.
const comeBack = time.Minute

// expect has the run end if its client wants this and does not come back, where the loss of a
// connection is not noticed. The connection ends by itself after limit at the latest. If expect
// fails for a client that has come back, its run ends at the time that was noted before.
func (s server) expect(ctx context.Context, ref run.Ref, cancel bool, limit time.Duration) error {
	if !cancel || s.Unnoticed == 0 {
		return nil
	}
	return s.Runs.Expect(ctx, ref, limit+comeBack)
}

// expectFirst is expect for the client that has created the run, whose answer goes on in any case.
func (s server) expectFirst(ctx context.Context, ref run.Ref, cancel bool, limit time.Duration) {
	if err := s.expect(ctx, ref, cancel, limit); err != nil {
		s.Log.ErrorContext(ctx, "run will not be cancelled if its client goes", "run", ref.Run, "error", err)
	}
}

// dismiss removes what expect has noted, as the run has ended.
func (s server) dismiss(ctx context.Context, ref run.Ref) {
	if s.Unnoticed == 0 {
		return
	}
	if err := s.Runs.Dismiss(ctx, ref); err != nil {
		s.Log.WarnContext(ctx, "the client of a run that has ended is looked for later", "run", ref.Run, "error", err)
	}
}

// longest is how long a request without a known deadline may last at most, which is how long a
// function may take. Servers of other protocols hide the deadline.
const longest = 15 * time.Minute

// untilDeadline is how long the request may last.
func untilDeadline(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline)
	}
	return longest
}

// TakeUpStatelessRun continues the answer of a run on a thread of its own. The thread has the
// same id as the run.
func (s server) TakeUpStatelessRun(ctx context.Context, request TakeUpStatelessRunRequestObject) (TakeUpStatelessRunResponseObject, error) {
	id := strings.ToLower(request.RunID)
	if request.Part == "join" {
		return s.join(ctx, runRef(ctx, id, id), request.Params.CancelOnDisconnect)
	}
	p := request.Params
	return s.takeUp(ctx, runRef(ctx, id, id), p.LastEventID, p.StreamMode, p.CancelOnDisconnect)
}
