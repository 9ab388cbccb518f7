// Command runstream serves the runs of each deployment's agent server whose answer is a stream
// or takes time, and the events of the control plane. API Gateway invokes it, and passes its
// response on while it is written. It asks agents for the authentication of repositories.
package main

import (
	"errors"
	"log/slog"
	"os"

	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/agents"
	"github.com/slipway-run/slipway/internal/host/stack/logs"
)

func main() { lambdahost.Start(open) }

func open(log *slog.Logger) (lambdahost.Function, error) {
	s, err := stack.Open(os.Getenv, log, stack.NeedTable, stack.NeedEngine, stack.NeedKey, logs.Need, agents.NeedTarget)
	if err != nil {
		return nil, err
	}
	var gateway lambdahost.Gateway
	mux := s.Mux()
	err = errors.Join(controlplane.Register(mux, controlplane.Config{
		Deployments: s.Deployments(), Authenticator: gateway, AgentURL: gateway.AgentURL(s.BaseURL), BaseURL: gateway.BaseURL(s.BaseURL),
		Logs: logs.Of(s), Tenancy: controlplane.Tenancy{Audit: s.Audit()},
	}), agentserver.Register(mux, agentserver.Config{
		Deployments: s.Deployments(), Assistants: s.Assistants(), Threads: s.Threads(), Runs: s.Runs(), Authenticator: gateway, Version: s.Version,
		Webhooks: s.Webhooks(), Agents: agents.Asked(s), Strangers: agents.Strangers(s), AgentURL: gateway.AgentURL(s.BaseURL), Unnoticed: lambdahost.Unnoticed, Log: log,
	}))
	return lambdahost.Streaming(mux, log, lambdahost.Unnoticed), err
}
