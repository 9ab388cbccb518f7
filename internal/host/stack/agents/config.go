package agents

import (
	"context"
	"strings"

	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/api/agentserver/strangers"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// Config is what the functions that serve agent servers have in common.
func Config(s *stack.Stack) agentserver.Config {
	var gateway lambdahost.Gateway
	return agentserver.Config{
		Deployments: s.Deployments(), Assistants: s.Assistants(), Threads: s.Threads(), Runs: s.Runs(), Webhooks: s.Webhooks(),
		Authenticator: gateway, AgentURL: gateway.AgentURL(s.BaseURL), Version: s.Version, Log: s.Log, Strangers: limits(s),
		Agents: &runner.Agents{ServerURL: ServerURL(s), Deployments: s.Deployments(), Target: Of(s).Target, Graph: graph.NewClient(nil), Log: s.Log},
	}
}

// ServerURL returns the address of agent servers, if the API has an address of its own: a
// function that no request has called cannot find out this address.
func ServerURL(s *stack.Stack) func(deployment string) string {
	if s.BaseURL == "" {
		return nil
	}
	return func(deployment string) string { return strings.TrimSuffix(s.BaseURL, "/") + "/d/" + deployment }
}

// limits bounds the questions about strangers for all processes of a stack together.
func limits(s *stack.Stack) strangers.Limits {
	hasher := func(ctx context.Context) (secret.Hasher, error) { return s.Key(ctx) }
	return strangers.Limits{Shared: &quota.Strangers{Table: s.Table(), Hasher: hasher, Now: clock.System, Log: s.Log}}
}
