package stack

import (
	"context"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// IntegrationConfig is the configuration of a service of integrations that only checks, and
// needs no secrets of the GitHub App. Package stack/repositories adds the secrets.
func (s *Stack) IntegrationConfig() integration.Config {
	return integration.Config{Table: s.Table(), Sealer: s.Sealer(), Now: clock.System, Log: s.Log, GitHubURL: s.Get(variableGitHubURL)}
}

// checks is the deployment.Integrations of all functions.
type checks struct{ *Stack }

// Check implements deployment.Integrations.
func (c checks) Check(ctx context.Context, workspace, integrationID, repoURL string) (func(string, time.Time) []table.Write, error) {
	service, err := integration.New(c.IntegrationConfig())
	if err != nil {
		return nil, err
	}
	return service.Check(ctx, workspace, integrationID, repoURL)
}
