// Command runstream serves the runs of each deployment's agent server whose answer is a stream
// or takes time, and the events of the control plane. API Gateway invokes it, and passes its
// response on while it is written. It asks agents for the authentication of repositories.
package main

import (
	"errors"

	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/agents"
	"github.com/slipway-run/slipway/internal/host/stack/logs"
)

func main() { lambdahost.Start(stack.Function(open, stack.NeedEngine, logs.Need, agents.NeedTarget)) }

func open(s *stack.Stack) (lambdahost.Function, error) {
	config := agents.Config(s)
	config.Unnoticed = lambdahost.Unnoticed
	var gateway lambdahost.Gateway
	mux := s.Mux()
	err := errors.Join(controlplane.Register(mux, controlplane.Config{
		Deployments: s.Deployments(), Authenticator: gateway, AgentURL: gateway.AgentURL(s.BaseURL), BaseURL: gateway.BaseURL(s.BaseURL),
		Logs: logs.Of(s), Tenancy: controlplane.Tenancy{Audit: s.Audit()},
	}), agentserver.Register(mux, config))
	return lambdahost.Streaming(mux, s.Log, lambdahost.Unnoticed), err
}
