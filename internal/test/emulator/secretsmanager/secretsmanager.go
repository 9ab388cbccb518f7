// Package secretsmanager answers read requests of the clients of Secrets Manager on one
// machine: it has the secrets that it is made with, and they cannot be changed. It is a part of
// the program that runs the functions on one machine, which needs no Python, as moto does.
package secretsmanager

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"strings"

	"github.com/slipway-run/slipway/internal/test/emulator/awsjson"
)

// Config holds the parts and settings of a service.
type Config struct {
	// Secrets maps the ARNs of secrets to their texts,
	// arn:aws:secretsmanager:<region>:<account>:secret:<name>.
	Secrets map[string]string
	// Log gets failures of the service itself; the default is slog's.
	Log *slog.Logger
}

// Service answers requests. Make one with New.
type Service struct {
	http    awsjson.Service
	secrets map[string]string
}

// New makes a service with its secrets.
func New(config Config) (*Service, error) {
	s := &Service{secrets: maps.Clone(config.Secrets)}
	for arn := range s.secrets {
		if name(arn) == "" {
			return nil, errors.New("new Secrets Manager emulator: a secret is named by arn:aws:secretsmanager:<region>:<account>:secret:<name>, not " + arn)
		}
	}
	s.http = awsjson.Service{
		Target: "secretsmanager", Version: "1.1", Log: cmp.Or(config.Log, slog.Default()),
		Operations: map[string]awsjson.Operation{"GetSecretValue": awsjson.Do(s.getSecretValue)},
	}
	return s, nil
}

func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.http.ServeHTTP(w, r) }

// name returns the name in a secret's ARN, or "" if arn is not the ARN of a secret.
func name(arn string) string {
	parts := strings.SplitN(arn, ":", 7)
	if len(parts) != 7 || parts[0] != "arn" || parts[2] != "secretsmanager" || parts[5] != "secret" {
		return ""
	}
	return parts[6]
}

// The only version of each secret.
const (
	version = "00000000-0000-4000-8000-000000000000"
	stage   = "AWSCURRENT"
)

type secretValue struct {
	ARN     string
	Name    string
	Text    string   `json:"SecretString"`
	Version string   `json:"VersionId"`
	Stages  []string `json:"VersionStages"`
}

// getSecretValue finds a secret only by its ARN: IAM grants functions only this.
func (s *Service) getSecretValue(_ context.Context, in struct {
	Secret  string `json:"SecretId"`
	Version string `json:"VersionId"`
	Stage   string `json:"VersionStage"`
}) (*secretValue, error) {
	text, there := s.secrets[in.Secret]
	if !there {
		return nil, &awsjson.Error{Name: "ResourceNotFoundException", Message: "Secrets Manager can't find the specified secret."}
	}
	if cmp.Or(in.Version, version) != version || cmp.Or(in.Stage, stage) != stage {
		return nil, &awsjson.Error{Name: "ResourceNotFoundException", Message: "Secrets Manager can't find the specified secret value."}
	}
	return &secretValue{ARN: in.Secret, Name: name(in.Secret), Text: text, Version: version, Stages: []string{stage}}, nil
}
