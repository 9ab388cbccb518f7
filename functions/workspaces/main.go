// Command workspaces serves the part of the control plane for permissions and for the record of
// changes: members, trust rules, API keys, the audit log. API Gateway invokes it, at the root
// and under /api-host.
package main

import (
	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/tenant/trust"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

func main() { lambdahost.Start(stack.Function(open)) }

func open(s *stack.Stack) (lambdahost.Function, error) {
	var gateway lambdahost.Gateway
	mux := s.Mux()
	err := controlplane.Register(mux, controlplane.Config{
		Tenancy: controlplane.Tenancy{
			Workspaces: workspace.NewStore(s.Table(), clock.System), Rules: trust.NewStore(s.Table(), clock.System),
			Keys: s.KeyStore, Audit: s.Audit(), Quotas: s.Usage(),
		},
		Answers: s.Answers(), Authenticator: gateway, AgentURL: gateway.AgentURL(s.BaseURL), BaseURL: gateway.BaseURL(s.BaseURL),
	})
	return lambdahost.Buffered(mux, s.Log), err
}
