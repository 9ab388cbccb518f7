package standalone

import (
	"context"

	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/api/metrics"
)

// figures are Metrics that show the figures of deployments in the format of the agent server's
// interface.
type figures struct{ *metrics.Metrics }

// Figures implements agentserver.Metrics.
func (f figures) Figures(_ context.Context, _, deployment string) (agentserver.Figures, error) {
	all, err := f.Metrics.Figures(deployment)
	shown := make(agentserver.Figures, len(all))
	for name, list := range all {
		for _, one := range list {
			shown[name] = append(shown[name], agentserver.Figure(one))
		}
	}
	return shown, err
}
