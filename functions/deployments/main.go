// Command deployments serves the control plane: deployments and their revisions. API Gateway
// invokes it, at the root and under /api-host.
package main

import (
	"log/slog"
	"os"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/images"
	"github.com/slipway-run/slipway/internal/host/stack/logs"
	"github.com/slipway-run/slipway/internal/host/stack/uploads"
)

func main() { lambdahost.Start(open) }

func open(log *slog.Logger) (lambdahost.Function, error) {
	s, err := stack.Open(os.Getenv, log, stack.NeedTable, stack.NeedEngine, stack.NeedKey, logs.Need, images.Need, uploads.Need)
	if err != nil {
		return nil, err
	}
	if s.Images, err = images.Of(s); err != nil {
		return nil, err
	}
	s.Uploads = uploads.Of(s)
	var gateway lambdahost.Gateway
	mux := s.Mux()
	err = controlplane.Register(mux, controlplane.Config{
		Deployments: s.Deployments(), Authenticator: gateway, AgentURL: gateway.AgentURL(s.BaseURL), Answers: s.Answers(),
		Tenancy:  controlplane.Tenancy{Audit: s.Audit()},
		Webhooks: s.Webhooks(), AuthService: s.AuthService(), Logs: logs.Of(s), BaseURL: gateway.BaseURL(s.BaseURL), RedactSecrets: s.RedactSecrets,
	})
	return lambdahost.Buffered(mux, log), err
}
