package stepfn_test

import (
	"context"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/stepfn"
	"github.com/slipway-run/slipway/internal/seam/workflow/workflowtest"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/emulator/stepfunctions"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const prefix = "arn:aws:states:eu-central-1:123456789012:stateMachine:stack-"

// newClient makes a client of a service that the test serves, as long as the test lasts.
func newClient(t *testing.T, service http.Handler) *sfn.Client {
	t.Helper()
	server := httptest.NewServer(service)
	transport := &http.Transport{MaxIdleConnsPerHost: 50}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	return sfn.New(sfn.Options{
		BaseEndpoint: aws.String(server.URL),
		Region:       "eu-central-1",
		HTTPClient:   &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		}),
	})
}

// TestConformance runs the suite on the emulator, through the SDK and HTTP.
func TestConformance(t *testing.T) {
	t.Parallel()
	workflowtest.Run(t, func(t *testing.T, definitions fs.FS, functions map[string]workflow.TaskFunc) workflow.Engine {
		t.Helper()
		tb := fixtures.Table(t)
		service, err := stepfunctions.New(stepfunctions.Config{
			Table: tb, Definitions: definitions, Functions: functions, Prefix: prefix, Log: slog.New(slog.DiscardHandler),
		})
		check.Must(t, err)
		t.Cleanup(func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			service.Close(ctx)
		})
		return stepfn.New(newClient(t, service), prefix)
	})
}
