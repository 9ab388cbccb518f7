package controlplane

import (
	"context"
	"net/http"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// Metrics counts the requests of each workspace. It is an interface because functions have no
// metrics, and would otherwise contain the code that counts.
type Metrics interface {
	// Count serves a request and counts it.
	Count(workspace string, w http.ResponseWriter, r *http.Request, next http.Handler)
	// Text returns a workspace's own figures, in the format that Prometheus reads.
	Text(ctx context.Context, labelled, workspace string) (string, error)
}

// GetMetrics shows the figures of the workspace's own requests. Where processes start and end
// with requests, the platform keeps the figures.
func (s server) GetMetrics(ctx context.Context, _ GetMetricsRequestObject) (GetMetricsResponseObject, error) {
	if s.Metrics == nil {
		return nil, fault.New(fault.Invalid, "This server does not offer: metrics. Those of its platform have the figures.")
	}
	workspaceID := auth.Workspace(ctx)
	shown, err := s.Metrics.Text(ctx, workspaceID, workspaceID)
	return GetMetrics200TextResponse(shown), err
}
