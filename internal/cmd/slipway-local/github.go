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

// The secrets that an operator would make in Secrets Manager: the GitHub App, and its webhook
// secrets.
const (
	secretARN        = "arn:aws:secretsmanager:" + region + ":" + account + ":secret:" + stackName
	gitHubAppARN     = secretARN + "-github-app"
	gitHubWebhookARN = secretARN + "-github-webhook"
)

// offerGitHub lets functions read the GitHub App, if there is an App. Errors in it are found
// now, not when it is first used.
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
	// Both are read from an object that also has other members.
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

// processEnvironment returns the environment of a function that runs as a process: the
// function also trusts the servers that this machine trusts, such as its own GitHub.
func (s *server) processEnvironment(f template.Function) map[string]string {
	environment := s.functionEnvironment(f)
	if file := os.Getenv("SSL_CERT_FILE"); file != "" {
		environment["SSL_CERT_FILE"] = file
	}
	return environment
}
