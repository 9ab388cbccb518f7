package agentserver

import (
	"context"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/optional"
)

// ExplainRun says why a run ended as it did, and when its parts were done.
func (s server) ExplainRun(ctx context.Context, request ExplainRunRequestObject) (ExplainRunResponseObject, error) {
	e, err := s.Runs.Explain(ctx, runRef(ctx, request.ThreadID, request.RunID))
	if err != nil {
		return nil, err
	}
	shown := ExplainRun200JSONResponse{
		RunID: e.Run.Run, ThreadID: e.Run.Thread, Status: RunStatus(e.Run.Status),
		Evidence: append([]string{}, e.Evidence...), Timeline: make([]RunMoment, len(e.Timeline)), HasMore: e.More,
		Cause: optional.Of(e.Cause), Remedy: optional.Of(e.Remedy), CreatedAt: clock.Format(e.Run.Created),
	}
	if !e.Run.Started.IsZero() {
		shown.StartedAt = new(clock.Format(e.Run.Started))
	}
	if e.Run.Status.Final() {
		shown.EndedAt = new(clock.Format(e.Run.Updated))
	}
	for i, moment := range e.Timeline {
		shown.Timeline[i] = RunMoment{Kind: RunMomentKind(moment.Kind), Nodes: append([]string{}, moment.Nodes...), Attempt: moment.Attempt, At: clock.Format(moment.At)}
	}
	return shown, nil
}
