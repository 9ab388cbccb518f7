// Command integrations serves the part of the control plane for access to repositories:
// installations of the GitHub App, and credentials for other git hosts. API Gateway invokes it,
// at the root and under /api-host.
package main

import (
	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/repositories"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

func main() { lambdahost.Start(stack.Function(open)) }

func open(s *stack.Stack) (lambdahost.Function, error) {
	integrations, err := repositories.Integrations(s)
	if err != nil {
		return nil, err
	}
	pushes, err := repositories.Pushes(s, nil)
	if err != nil {
		return nil, err
	}
	var gateway lambdahost.Gateway
	mux := s.Mux()
	err = controlplane.Register(mux, controlplane.Config{
		Integrations: integrations, Push: pushes, Deployments: s.Deployments(), Answers: s.Answers(),
		Tenancy:       controlplane.Tenancy{Workspaces: workspace.NewStore(s.Table(), clock.System), Audit: s.Audit()},
		Authenticator: gateway, AgentURL: gateway.AgentURL(s.BaseURL), BaseURL: gateway.BaseURL(s.BaseURL),
	})
	return lambdahost.Buffered(mux, s.Log), err
}
