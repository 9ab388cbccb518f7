package integration

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Config is the configuration of a Service.
type Config struct {
	Table  table.Table
	Sealer secret.Sealer
	Now    clock.Clock
	Log    *slog.Logger
	// GitHub is the server's GitHub App; nil when the server has no App.
	GitHub *App
	// LoadGitHub fetches the App when it is first needed, in place of GitHub; nil when there
	// is no App to fetch. After a failed fetch, the next caller that needs the App fetches it
	// again.
	LoadGitHub func(context.Context) (*App, error)
	// GitHubURL is the address of the App's repositories, for a service that only checks and
	// needs no secrets for this; when it is empty, the service uses the address of the App
	// itself.
	GitHubURL string
}

// Service reads and writes integrations, and speaks to GitHub.
type Service struct {
	table  table.Table
	sealer secret.Sealer
	now    clock.Clock
	log    *slog.Logger
	tokens *tokenCache
	// host is the host of Config.GitHubURL.
	host string

	mu     sync.Mutex
	github *github
	load   func(context.Context) (*App, error)
}

// New returns a service. An App that cannot be used as it is configured is an error. The error
// contains no secret of the App.
func New(c Config) (*Service, error) {
	s := &Service{table: c.Table, sealer: c.Sealer, now: c.Now, log: c.Log, tokens: newTokenCache(), load: c.LoadGitHub}
	if c.GitHub != nil {
		var err error
		if s.github, err = newGitHub(*c.GitHub, c.Now); err != nil {
			return nil, err
		}
	}
	if c.GitHubURL != "" {
		u, err := parseAddress("web address", c.GitHubURL)
		if err != nil {
			return nil, err
		}
		s.host = plainHost(u)
	}
	return s, nil
}

// Ref names an integration. Every read and write begins with the workspace.
type Ref struct {
	Workspace, Integration string
}

func notFound(ref Ref) error {
	return fault.New(fault.NotFound, "Integration ID %s not found.", ref.Integration)
}

// app returns the server's App. No operation with GitHub works without it.
func (s *Service) app(ctx context.Context) (*github, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.github == nil && s.load != nil {
		app, err := s.load(ctx)
		if err != nil {
			return nil, fmt.Errorf("fetch GitHub App: %w", err)
		}
		if s.github, err = newGitHub(*app, s.now); err != nil {
			return nil, err
		}
	}
	if s.github == nil {
		return nil, fault.New(fault.Conflict, "This server has no GitHub App. Its operator can register one; until then, use credentials for the git host.")
	}
	return s.github, nil
}

// gitHubHost returns the host of the App's repositories.
func (s *Service) gitHubHost(ctx context.Context) (string, error) {
	if s.host != "" {
		return s.host, nil
	}
	app, err := s.app(ctx)
	if err != nil {
		return "", err
	}
	return plainHost(app.web), nil
}
