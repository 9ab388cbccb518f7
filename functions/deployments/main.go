// Command deployments serves the control plane: deployments and their revisions. API Gateway
// invokes it, at the root and under /api-host.
package main

import (
	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/images"
	"github.com/slipway-run/slipway/internal/host/stack/logs"
	"github.com/slipway-run/slipway/internal/host/stack/uploads"
)

func main() {
	lambdahost.Start(stack.Function(open, stack.NeedEngine, logs.Need, images.Need, uploads.Need))
}

func open(s *stack.Stack) (_ lambdahost.Function, err error) {
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
	return lambdahost.Buffered(mux, s.Log), err
}
