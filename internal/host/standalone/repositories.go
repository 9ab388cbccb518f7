package standalone

import (
	"context"
	"fmt"
	"os"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/control/push"
	"github.com/slipway-run/slipway/internal/seam/secret"
)

// repositories holds the services that clone private repositories, and that receive their
// pushes.
type repositories struct {
	integrations *integration.Service
	push         *push.Receiver
	config       push.Config
}

// openRepositories reads the GitHub App, if the server has an App. Errors in it are found now,
// and not at its first use.
func (s *Server) openRepositories() (*repositories, error) {
	config := integration.Config{Table: s.records, Sealer: s.key, Now: clock.System}
	var hooks []string
	if file := s.config.GitHubApp; file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read GitHub App: %w", err)
		}
		if config.GitHub, err = integration.ParseApp(text); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if hooks, err = push.ParseSecrets(text); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	integrations, err := integration.New(config)
	if err != nil {
		return nil, err
	}
	return &repositories{integrations: integrations, config: push.Config{
		Table: s.records, Now: clock.System, Log: s.config.Log, Installations: integrations,
		Hasher:  func(context.Context) (secret.Hasher, error) { return s.key, nil },
		Secrets: func(context.Context) ([]string, error) { return hooks, nil },
	}}, nil
}

// receive makes pushes build revisions of deployments.
func (r *repositories) receive(deployments *deployment.Store) {
	r.config.Builder = deployments
	r.push = push.NewReceiver(r.config)
}
