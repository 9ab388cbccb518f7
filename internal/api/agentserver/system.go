package agentserver

import (
	"context"
	"net/http"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// Metrics counts the requests of each deployment.
type Metrics interface {
	// Count serves a request and counts it.
	Count(deployment string, w http.ResponseWriter, r *http.Request, next http.Handler)
	// Text returns a deployment's own figures in Prometheus's text format.
	Text(ctx context.Context, workspace, deployment string) (string, error)
	// Figures returns the same figures by name.
	Figures(ctx context.Context, workspace, deployment string) (model.Figures, error)
}

// GetOK says whether an agent of the deployment serves. It needs no credentials, because
// health checks have no credentials, so it says nothing more.
func (s server) GetOK(ctx context.Context, _ GetOKRequestObject) (GetOKResponseObject, error) {
	d := served(ctx)
	if d.Settings.HTTP.Disables("meta") {
		return GetOK200JSONResponse{Ok: true}, nil
	}
	if d.Active == "" {
		return nil, fault.New(fault.Unavailable, "No revision of the deployment has been deployed yet.")
	}
	if d.Crashed.IsZero() {
		return GetOK200JSONResponse{Ok: true}, nil
	}
	serves, err := s.Agents.Serves(ctx, d.Workspace, d.Deployment)
	if err == nil && !serves {
		err = fault.New(fault.Unavailable, "The deployment's agent has ended, and is being started again.")
	}
	return GetOK200JSONResponse{Ok: true}, err
}

// open finds the deployment of GetOK, which needs no credentials and so has no workspace.
func (s server) open(next StrictHandlerFunc, operation string) StrictHandlerFunc {
	if operation != "GetOK" {
		return next
	}
	return func(ctx context.Context, w http.ResponseWriter, r *http.Request, request any) (any, error) {
		d, err := s.anyDeployment(r)
		if err != nil {
			if !fault.Is(err, fault.NotFound) {
				err = fault.New(fault.Unavailable, "The database does not answer.")
			}
			return nil, err
		}
		return next(context.WithValue(ctx, deploymentKey{}, d), w, r, request)
	}
}

// document shows the contract, or the page about it, unless the deployment disables that.
func (s server) document(shown http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d, err := s.anyDeployment(r); err == nil && d.Settings.HTTP.Disables("meta") {
			s.mux.Error(w, r, fault.New(fault.NotFound, "Not Found"))
			return
		}
		shown.ServeHTTP(w, r)
	})
}

// GetInfo returns the version of the server, the active revision, and the features of the
// server. The revision is "" before the first revision was promoted.
func (s server) GetInfo(ctx context.Context, _ GetInfoRequestObject) (GetInfoResponseObject, error) {
	d := served(ctx)
	return GetInfo200JSONResponse{
		Version: s.Version,
		Flags: object(map[string]any{
			"assistants": s.Assistants != nil, "crons": s.Crons != nil, "store": s.Store != nil, "metrics": s.Metrics != nil,
			"strict_resume": true, "thread_streaming": true, "thread_streaming_websocket": s.WebSockets,
		}),
		Metadata: object(map[string]any{"deployment_id": d.Deployment, "revision_id": d.Active}),
	}, nil
}

// GetMetrics shows the deployment's own figures. Where processes start and end with requests,
// the platform keeps the figures.
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
