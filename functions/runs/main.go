// Command runs serves the runs of each deployment's agent server whose answer is ready at once.
// API Gateway invokes it. It asks agents for the authentication of repositories.
package main

import (
	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/agents"
)

func main() { lambdahost.Start(stack.Function(open, stack.NeedEngine, agents.NeedTarget)) }

func open(s *stack.Stack) (lambdahost.Function, error) {
	config := agents.Config(s)
	config.Answers = s.Answers()
	mux := s.Mux()
	err := agentserver.Register(mux, config)
	return lambdahost.Buffered(mux, s.Log), err
}
