// Command threads serves the threads of each deployment's agent server, and its /ok, /info and
// /openapi.json. API Gateway invokes it. It asks agents when a thread's state is
// changed, and for the authentication of repositories.
package main

import (
	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/agents"
)

func main() { lambdahost.Start(stack.Function(open, stack.NeedEngine, agents.NeedTarget)) }

func open(s *stack.Stack) (lambdahost.Function, error) {
	mux := s.Mux()
	err := agentserver.Register(mux, agents.Config(s))
	return lambdahost.Buffered(mux, s.Log), err
}
