// Command runs serves the runs of each deployment's agent server whose answer is ready at once.
// API Gateway invokes it. It asks agents for the authentication of repositories.
package main

import (
	"log/slog"
	"os"

	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/agents"
)

func main() { lambdahost.Start(open) }

func open(log *slog.Logger) (lambdahost.Function, error) {
	s, err := stack.Open(os.Getenv, log, stack.NeedTable, stack.NeedEngine, stack.NeedKey, agents.NeedTarget)
	if err != nil {
		return nil, err
	}
	var gateway lambdahost.Gateway
	mux := s.Mux()
	err = agentserver.Register(mux, agentserver.Config{
		Deployments: s.Deployments(), Assistants: s.Assistants(), Threads: s.Threads(), Runs: s.Runs(), Authenticator: gateway, Version: s.Version,
		Webhooks: s.Webhooks(), Answers: s.Answers(), Agents: agents.Asked(s), Strangers: agents.Strangers(s), AgentURL: gateway.AgentURL(s.BaseURL), Log: log,
	})
	return lambdahost.Buffered(mux, log), err
}
