package agentserver

import (
	"context"
	"net/http"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
)

// Metrics counts the requests of each deployment.
type Metrics interface {
	// Count serves a request and counts it.
	Count(deployment string, w http.ResponseWriter, r *http.Request, next http.Handler)
	// Text is a deployment's own figures, as Prometheus reads them.
	Text(ctx context.Context, workspace, deployment string) (string, error)
	// Figures is the same by name.
	Figures(ctx context.Context, workspace, deployment string) (Figures, error)
}

// GetOK answers that the server takes requests, and when asked to that it reaches the database.
func (s server) GetOK(ctx context.Context, request GetOKRequestObject) (GetOKResponseObject, error) {
	if isTrue(request.Params.CheckDB) {
		// Any read will do. Nobody has a thread of no workspace.
		_, err := s.Threads.Get(ctx, thread.Ref{Workspace: id.Of("ok"), Deployment: id.Of("ok"), Thread: id.Of("ok")})
		if err != nil && !fault.Is(err, fault.NotFound) {
			return nil, fault.New(fault.Unavailable, "The database does not answer.")
		}
	}
	return GetOK200JSONResponse{Ok: true}, nil
}

// GetInfo tells which server and which revision this is, and what it can do. The revision is "" before the first was promoted.
func (s server) GetInfo(ctx context.Context, _ GetInfoRequestObject) (GetInfoResponseObject, error) {
	d := served(ctx)
	return GetInfo200JSONResponse{
		Version: s.Version,
		Flags: object(map[string]any{
			"assistants": s.Assistants != nil, "crons": s.Crons != nil, "store": s.Store != nil, "metrics": s.Metrics != nil,
		}),
		Metadata: object(map[string]any{"deployment_id": d.Deployment, "revision_id": d.Active}),
	}, nil
}

// GetMetrics shows the deployment's own figures. Where processes come and go with requests, the platform keeps them.
func (s server) GetMetrics(ctx context.Context, request GetMetricsRequestObject) (GetMetricsResponseObject, error) {
	if s.Metrics == nil {
		return nil, fault.New(fault.Invalid, "This server does not offer: metrics. Those of its platform have the figures.")
	}
	d := served(ctx)
	if request.Params.Format != nil && *request.Params.Format == "json" {
		shown, err := s.Metrics.Figures(ctx, d.Workspace, d.Deployment)
		return GetMetrics200JSONResponse(shown), err
	}
	shown, err := s.Metrics.Text(ctx, d.Workspace, d.Deployment)
	return GetMetrics200TextResponse(shown), err
}
