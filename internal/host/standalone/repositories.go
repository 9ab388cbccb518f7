package standalone

import (
	"context"
	"fmt"
	"os"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/control/push"
	"github.com/slipway-run/slipway/internal/seam/secret"
)

// openRepositories opens the service that clones private repositories. It reads the GitHub App, if
// the server has an App: errors in it are found now, and not at its first use.
func (s *Server) openRepositories() (err error) {
	config := integration.Config{Table: s.records, Sealer: s.key, Now: clock.System, Log: s.config.Log}
	if file := s.config.GitHubApp; file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read GitHub App: %w", err)
		}
		if config.GitHub, err = integration.ParseApp(text); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if s.pushSecrets, err = push.ParseSecrets(text); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	s.integrations, err = integration.New(config)
	return err
}

// openPushes makes pushes to repositories build revisions of deployments.
func (s *Server) openPushes() {
	s.pushes = push.NewReceiver(push.Config{
		Table: s.records, Now: clock.System, Log: s.config.Log, Builder: s.deployments, Installations: s.integrations,
		Hasher:  func(context.Context) (secret.Hasher, error) { return s.key, nil },
		Secrets: func(context.Context) ([]string, error) { return s.pushSecrets, nil },
	})
}
