// Command threads serves the threads of each deployment's agent server, and its /ok, /info and
// /openapi.json. API Gateway invokes it. It asks agents when a thread's state is
// changed, and for the authentication of repositories.
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
		Agents: agents.Asked(s), Strangers: agents.Strangers(s), AgentURL: gateway.AgentURL(s.BaseURL), Log: log,
	})
	return lambdahost.Buffered(mux, log), err
}
