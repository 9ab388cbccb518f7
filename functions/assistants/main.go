// Command assistants serves the assistants, the store and the crons of each deployment's agent
// server. API Gateway invokes it. It asks agents for the structure of their graphs, and for
// the authentication of repositories.
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
	s, err := stack.Open(os.Getenv, log, stack.NeedTable, stack.NeedKey, agents.NeedTarget)
	if err != nil {
		return nil, err
	}
	var gateway lambdahost.Gateway
	mux := s.Mux()
	err = agentserver.Register(mux, agentserver.Config{
		Assistants: s.Assistants(), Store: s.Store(), Crons: s.Crons(), Deployments: s.Deployments(), Threads: s.Threads(), Runs: s.Runs(),
		Authenticator: gateway, Version: s.Version, Webhooks: s.Webhooks(), AgentURL: gateway.AgentURL(s.BaseURL),
		Agents: agents.Asked(s), Strangers: agents.Strangers(s), Log: log,
	})
	return lambdahost.Buffered(mux, log), err
}
