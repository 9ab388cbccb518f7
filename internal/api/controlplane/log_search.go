package controlplane

import (
	"context"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

// FindBuildLogs returns a page of the output of a revision's build, in the words of an earlier
// interface.
func (s server) FindBuildLogs(ctx context.Context, request FindBuildLogsRequestObject) (FindBuildLogsResponseObject, error) {
	page, err := s.findLogs(ctx, ref(ctx, request.DeploymentID).Revision(request.RevisionID), revisionlog.Build, *request.Body)
	return FindBuildLogs200JSONResponse(page), err
}

// FindAgentLogs returns a page of the output of a revision's agent.
func (s server) FindAgentLogs(ctx context.Context, request FindAgentLogsRequestObject) (FindAgentLogsResponseObject, error) {
	page, err := s.findLogs(ctx, ref(ctx, request.DeploymentID).Revision(request.RevisionID), revisionlog.Deploy, *request.Body)
	return FindAgentLogs200JSONResponse(page), err
}

// FindDeploymentLogs returns a page of the output of a deployment's agent.
func (s server) FindDeploymentLogs(ctx context.Context, request FindDeploymentLogsRequestObject) (FindDeploymentLogsResponseObject, error) {
	at, err := s.Logs.LoggedRevision(ctx, ref(ctx, request.DeploymentID), revisionlog.Deploy)
	if err != nil {
		return nil, err
	}
	page, err := s.findLogs(ctx, at, revisionlog.Deploy, *request.Body)
	return FindDeploymentLogs200JSONResponse(page), err
}

func (s server) findLogs(ctx context.Context, at revision.Ref, kind revisionlog.Kind, wanted LogRequest) (LogPage, error) {
	query := revisionlog.Query{Backward: value(wanted.Order) == Desc, After: value(wanted.Offset), Limit: optional.Or(wanted.Limit, defaultLogLimit)}
	if err := logTimes(&query, "body", wanted.StartTime, wanted.EndTime); err != nil {
		return LogPage{}, err
	}
	page, err := s.Logs.Read(ctx, at, kind, logFilter(wanted.Query, wanted.Level, nil), query)
	// These clients follow a log by repeating the request with the last offset that they
	// received, so every answer with lines has an offset.
	if page.Cursor == "" && len(page.Items) > 0 {
		page.Cursor = page.Items[len(page.Items)-1].ID
	}
	return LogPage{Logs: web.ShowAll(page.Items, showLine), NextOffset: optional.Of(page.Cursor)}, err
}
