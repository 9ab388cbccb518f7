// Command assistants serves the assistants, the store and the crons of each deployment's agent
// server. API Gateway invokes it. It asks agents for the structure of their graphs, and for
// the authentication of repositories.
package main

import (
	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/agents"
)

func main() { lambdahost.Start(stack.Function(open, agents.NeedTarget)) }

func open(s *stack.Stack) (lambdahost.Function, error) {
	config := agents.Config(s)
	config.Store, config.Crons = s.Store(), s.Crons()
	mux := s.Mux()
	err := agentserver.Register(mux, config)
	return lambdahost.Buffered(mux, s.Log), err
}
