// Command agentroutes serves the own HTTP applications and user interfaces of repositories, and
// agent servers that are mounted below a prefix: all paths of a deployment that no other function
// has. API Gateway invokes it, and passes its response on while it is written.
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
	config.Store, config.Crons, config.Answers, config.Unnoticed = s.Store(), s.Crons(), s.Answers(), lambdahost.Unnoticed
	mux := s.Mux()
	err := agentserver.Register(mux, config)
	return lambdahost.Streaming(mux, s.Log, lambdahost.Unnoticed), err
}
