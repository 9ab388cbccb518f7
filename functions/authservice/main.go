// Command authservice serves the part of the control plane that obtains, keeps and hands out tokens
// of users. API Gateway invokes it, at the root and under /api-host.
package main

import (
	"time"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// waitLimit is how long a request waits for a user's consent: API Gateway abandons an answer
// after 29 s.
const waitLimit = 25 * time.Second

func main() { lambdahost.Start(stack.Function(open)) }

func open(s *stack.Stack) (lambdahost.Function, error) {
	var gateway lambdahost.Gateway
	mux := s.Mux()
	err := controlplane.Register(mux, controlplane.Config{
		AuthService: s.AuthService(), WaitLimit: waitLimit, Answers: s.Answers(),
		Tenancy:       controlplane.Tenancy{Workspaces: workspace.NewStore(s.Table(), clock.System), Audit: s.Audit()},
		Authenticator: gateway, AgentURL: gateway.AgentURL(s.BaseURL), BaseURL: gateway.BaseURL(s.BaseURL),
	})
	return lambdahost.Buffered(mux, s.Log), err
}
