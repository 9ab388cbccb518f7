// Command agentroutes serves the own HTTP applications and user interfaces of repositories, and
// agent servers that are mounted below a prefix: all paths of a deployment that no other function
// has. API Gateway invokes it, and passes its response on while it is written.
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
		Deployments: s.Deployments(), Assistants: s.Assistants(), Threads: s.Threads(), Runs: s.Runs(), Store: s.Store(), Crons: s.Crons(),
		Authenticator: gateway, Version: s.Version, Webhooks: s.Webhooks(), Answers: s.Answers(), AgentURL: gateway.AgentURL(s.BaseURL),
		Agents: agents.Asked(s), Strangers: agents.Strangers(s), Unnoticed: lambdahost.Unnoticed, Log: log,
	})
	return lambdahost.Streaming(mux, log, lambdahost.Unnoticed), err
}
