package standalone

import (
	"context"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"
	"github.com/slipway-run/slipway/internal/api/metrics"
)

// figures are Metrics that show the figures of deployments in the format of the agent server's
// interface.
type figures struct{ *metrics.Metrics }

// Figures implements agentserver.Metrics.
func (f figures) Figures(_ context.Context, _, deployment string) (model.Figures, error) {
	all, err := f.Metrics.Figures(deployment)
	shown := make(model.Figures, len(all))
	for name, list := range all {
		for _, one := range list {
			shown[name] = append(shown[name], model.Figure(one))
		}
	}
	return shown, err
}
