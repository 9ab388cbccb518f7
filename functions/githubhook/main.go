// Command githubhook takes the webhooks by which GitHub and other hosts report pushes, and
// makes revisions of the deployments that are built on these pushes. API Gateway invokes it, at
// the root and under /api-host, for all callers: the webhooks are signed.
package main

import (
	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/repositories"
)

func main() { lambdahost.Start(stack.Function(open, stack.NeedEngine)) }

func open(s *stack.Stack) (lambdahost.Function, error) {
	pushes, err := repositories.Pushes(s, s.Deployments())
	if err != nil {
		return nil, err
	}
	var gateway lambdahost.Gateway
	mux := s.Mux()
	err = controlplane.Register(mux, controlplane.Config{
		Push: pushes, Authenticator: gateway, AgentURL: gateway.AgentURL(s.BaseURL), BaseURL: gateway.BaseURL(s.BaseURL),
	})
	return lambdahost.Buffered(mux, s.Log), err
}
