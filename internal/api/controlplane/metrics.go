package controlplane

import (
	"context"
	"net/http"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// Metrics counts the requests of each workspace. It is an interface because functions have none,
// and would carry what counts them.
type Metrics interface {
	// Count serves a request and counts it.
	Count(workspace string, w http.ResponseWriter, r *http.Request, next http.Handler)
	// Text is a workspace's own figures, as Prometheus reads them.
	Text(ctx context.Context, labelled, workspace string) (string, error)
}

// GetMetrics shows the figures of the workspace's own requests. Where processes come and go with
// requests, the platform keeps them.
func (s server) GetMetrics(ctx context.Context, _ GetMetricsRequestObject) (GetMetricsResponseObject, error) {
	if s.Metrics == nil {
		return nil, fault.New(fault.Invalid, "This server does not offer: metrics. Those of its platform have the figures.")
	}
	workspaceID := auth.Workspace(ctx)
	shown, err := s.Metrics.Text(ctx, workspaceID, workspaceID)
	return GetMetrics200TextResponse(shown), err
}
