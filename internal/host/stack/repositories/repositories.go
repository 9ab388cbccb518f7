// Package repositories makes, from a stack, the services that clone private repositories and
// that receive their pushes. It is apart from package stack because it brings the client of
// Secrets Manager, where the operator keeps the GitHub App, into a function.
package repositories

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/control/push"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/seam/secret"
)

// Names of the variables for the operator's secrets in Secrets Manager.
const (
	variableGitHubApp     = "SLIPWAY_GITHUB_APP"
	variableGitHubWebhook = "SLIPWAY_GITHUB_WEBHOOK"
)

// Integrations is the service that clones private repositories. The first request that needs
// the GitHub App reads it.
func Integrations(s *stack.Stack) (*integration.Service, error) {
	config := s.IntegrationConfig()
	if name := s.Get(variableGitHubApp); name != "" {
		config.LoadGitHub = func(ctx context.Context) (*integration.App, error) {
			text, err := kept(ctx, s, name)
			if err != nil {
				return nil, err
			}
			return integration.ParseApp(text)
		}
	}
	return integration.New(config)
}

// Pushes receives the messages of repository hosts about pushes, which make revisions. builder
// may be nil if no message is received.
func Pushes(s *stack.Stack, builder *deployment.Store) (*push.Receiver, error) {
	installations, err := integration.New(s.IntegrationConfig())
	if err != nil {
		return nil, err
	}
	config := push.Config{
		Table: s.Table(), Now: clock.System, Builder: builder, Installations: installations,
		Hasher: func(ctx context.Context) (secret.Hasher, error) { return s.Key(ctx) },
	}
	if name := s.Get(variableGitHubWebhook); name != "" {
		config.Secrets = webhookSecrets(s, name)
	}
	return push.NewReceiver(config), nil
}

// secretTime is how long the webhook secrets are used before they are read again: a changed
// secret is in use after this time at the latest.
const secretTime = time.Minute

// webhookSecrets reads the secrets at the first delivery, and again when they are old.
func webhookSecrets(s *stack.Stack, name string) func(context.Context) ([]string, error) {
	var held struct {
		sync.Mutex

		secrets []string
		until   time.Time
	}
	return func(ctx context.Context) ([]string, error) {
		held.Lock()
		defer held.Unlock()
		now := clock.System()
		if now.Before(held.until) {
			return held.secrets, nil
		}
		text, err := kept(ctx, s, name)
		if err != nil {
			return nil, err
		}
		if held.secrets, err = push.ParseSecrets(text); err != nil {
			return nil, err
		}
		held.until = now.Add(secretTime)
		return held.secrets, nil
	}
}

// kept reads a secret that the operator keeps in Secrets Manager.
func kept(ctx context.Context, s *stack.Stack, name string) ([]byte, error) {
	stored, err := secretsmanager.NewFromConfig(s.AWS).GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &name})
	if err != nil {
		return nil, fmt.Errorf("read secret %s: %w", name, err)
	}
	if stored.SecretString == nil {
		return nil, fmt.Errorf("read secret %s: it is not text", name)
	}
	return []byte(*stored.SecretString), nil
}
