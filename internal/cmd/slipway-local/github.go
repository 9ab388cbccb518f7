package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"os"

	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/control/push"
	"github.com/slipway-run/slipway/internal/test/emulator/secretsmanager"
	"github.com/slipway-run/slipway/internal/test/template"
)

// What an operator would have made in Secrets Manager: the GitHub App, and its webhook secrets.
const (
	secretARN        = "arn:aws:secretsmanager:" + region + ":" + account + ":secret:" + stackName
	gitHubAppARN     = secretARN + "-github-app"
	gitHubWebhookARN = secretARN + "-github-webhook"
)

// offerGitHub lets functions read the GitHub App, if there is one. What is wrong with it is found
// now, not by the first who needs it.
func (s *server) offerGitHub() error {
	if s.config.GitHubApp == "" {
		return nil
	}
	text, err := os.ReadFile(s.config.GitHubApp)
	if err != nil {
		return fmt.Errorf("read GitHub App: %w", err)
	}
	app, err := integration.ParseApp(text)
	if err != nil {
		return fmt.Errorf("%s: %w", s.config.GitHubApp, err)
	}
	if _, err := push.ParseSecrets(text); err != nil {
		return fmt.Errorf("%s: %w", s.config.GitHubApp, err)
	}
	// Both are read from an object with other members.
	secrets, err := secretsmanager.New(secretsmanager.Config{
		Secrets: map[string]string{gitHubAppARN: string(text), gitHubWebhookARN: string(text)}, Log: s.config.Log,
	})
	if err != nil {
		return err
	}
	maps.Copy(s.environment, map[string]string{
		"SLIPWAY_GITHUB_APP": gitHubAppARN, "SLIPWAY_GITHUB_WEBHOOK": gitHubWebhookARN,
		"SLIPWAY_GITHUB_URL": cmp.Or(app.WebURL, s.said("SLIPWAY_GITHUB_URL")),
	})
	return s.offer(map[string]http.Handler{"AWS_ENDPOINT_URL_SECRETS_MANAGER": secrets})
}

// processEnvironment is a function's environment as a process: whom this machine trusts, such as a
// GitHub of its own, that trusts too.
func (s *server) processEnvironment(f template.Function) map[string]string {
	environment := s.functionEnvironment(f)
	if file := os.Getenv("SSL_CERT_FILE"); file != "" {
		environment["SSL_CERT_FILE"] = file
	}
	return environment
}
