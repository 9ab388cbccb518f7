//go:build dynamo

package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/emulator/dynamodb"
	"github.com/slipway-run/slipway/internal/test/emulator/kms"
	"github.com/slipway-run/slipway/internal/test/fixtures"
	"github.com/slipway-run/slipway/internal/test/template"
)

const keyARN = "arn:aws:kms:us-east-1:000000000000:key/7f3c1c1e-0000-4000-8000-000000000000"

// TestStack runs the scripts for the records of a stack: its table as the template declares it, in
// DynamoDB Local, and its key.
func TestStack(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	check.Must(t, err)
	registry, err := child.Open(t.TempDir())
	check.Must(t, err)
	server, err := dynamodb.Start(t.Context(), dynamodb.Config{Root: root, Registry: registry, Output: os.Stderr})
	check.Must(t, err)
	t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if err := registry.Close(); err != nil {
			t.Error(err)
		}
	})
	createTable(t, root, server.Endpoint())
	environment := map[string]string{
		"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		"AWS_ENDPOINT_URL_DYNAMODB": server.Endpoint(), "AWS_ENDPOINT_URL_KMS": serveKMS(t), "KEY": keyARN,
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "stack"),
		Setup: func(env *testscript.Env) error {
			for name, value := range environment {
				env.Setenv(name, value)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "keep": keep, "keyid": keyid,
			// authorized checks a key as the stack's authorizer does: authorized key role,
			// without a role for an invalid key.
			"authorized": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(authorized(environment, args[0], strings.Join(args[1:], "")))
			},
		},
	})
}

func createTable(t *testing.T, root, endpoint string) {
	t.Helper()
	read, err := template.Load(filepath.Join(root, "template.yaml"))
	check.Must(t, err)
	declared, err := read.Resolve(template.Values{})
	check.Must(t, err)
	client := awsdynamodb.NewFromConfig(aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(endpoint),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	})
	check.Must(t, dynamodb.CreateTable(t.Context(), client, "slipway", declared.Tables["Table"]))
}

func serveKMS(t *testing.T) string {
	t.Helper()
	key := fixtures.Key(t)
	service, err := kms.New(kms.Config{Key: key, ARN: keyARN, Log: slog.New(slog.DiscardHandler)})
	check.Must(t, err)
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	return server.URL
}

type wrongRole string

func (e wrongRole) Error() string { return string(e) }

func authorized(environment map[string]string, key, role string) error {
	platform := map[string]string{"AWS_REGION": "us-east-1", "SLIPWAY_TABLE": "slipway", "SLIPWAY_KMS_KEY": keyARN}
	s, err := stack.Open(func(name string) string { return environment[name] + platform[name] }, slog.New(slog.DiscardHandler), stack.NeedTable, stack.NeedKey)
	if err != nil {
		return err
	}
	principal, err := s.APIKeys().Key((&http.Request{Header: http.Header{"X-Api-Key": {key}}}))
	if string(principal.Role) != role {
		return wrongRole("the key has the role " + string(principal.Role) + ", not " + role)
	}
	if role == "" && err != nil {
		err = nil
	}
	return err
}
