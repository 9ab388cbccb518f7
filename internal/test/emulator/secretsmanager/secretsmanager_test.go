package secretsmanager_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/test/check"
	emulator "github.com/slipway-run/slipway/internal/test/emulator/secretsmanager"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	arn  = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:"
	app  = arn + "app"
	text = `{"private_key": "a\nb", "slug": "ü"}`
)

// serve makes a client of a service with one secret.
func serve(t *testing.T) *secretsmanager.Client {
	t.Helper()
	service, err := emulator.New(emulator.Config{Secrets: map[string]string{app: text}, Log: slog.New(slog.DiscardHandler)})
	check.Must(t, err)
	server := httptest.NewServer(service)
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	return secretsmanager.New(secretsmanager.Options{
		BaseEndpoint: aws.String(server.URL), Region: "eu-central-1", HTTPClient: &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		}),
	})
}

func TestASecretIsRead(t *testing.T) {
	t.Parallel()
	out, err := serve(t).GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: aws.String(app), VersionStage: aws.String("AWSCURRENT")})
	check.Must(t, err)
	if *out.SecretString != text || *out.ARN != app || *out.Name != "app" {
		t.Errorf("got %q of %s, %s", *out.SecretString, *out.ARN, *out.Name)
	}
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	t.Parallel()
	c := serve(t)
	for name, in := range map[string]secretsmanager.GetSecretValueInput{
		"another secret":  {SecretId: aws.String(arn + "webhook")},
		"part of a name":  {SecretId: aws.String(arn + "ap")},
		"a name alone":    {SecretId: aws.String("app")},
		"another stage":   {SecretId: aws.String(app), VersionStage: aws.String("AWSPREVIOUS")},
		"another version": {SecretId: aws.String(app), VersionId: aws.String("11111111-0000-4000-8000-000000000000")},
	} {
		_, err := c.GetSecretValue(t.Context(), &in)
		if _, ok := errors.AsType[*types.ResourceNotFoundException](err); !ok {
			t.Errorf("%s: got %v, want a ResourceNotFoundException", name, err)
		}
	}
}

func TestASecretNeedsAnARN(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "app", "arn:aws:kms:eu-central-1:123456789012:key/1", arn} {
		if _, err := emulator.New(emulator.Config{Secrets: map[string]string{name: text}}); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
}
