package agents

import (
	"context"
	"strings"

	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// Asked returns the agents of a stack, for functions that ask agents in the middle of a request.
func Asked(s *stack.Stack) *runner.Agents {
	return &runner.Agents{ServerURL: ServerURL(s), Deployments: s.Deployments(), Target: Of(s).Target, Graph: graph.NewClient(nil), Log: s.Log}
}

// ServerURL returns the address of agent servers, if the API has an address of its own: a
// function that no request has called cannot find out this address.
func ServerURL(s *stack.Stack) func(deployment string) string {
	if s.BaseURL == "" {
		return nil
	}
	return func(deployment string) string { return strings.TrimSuffix(s.BaseURL, "/") + "/d/" + deployment }
}

// Strangers bounds the questions about strangers for all processes of a stack together.
func Strangers(s *stack.Stack) agentserver.StrangerLimits {
	hasher := func(ctx context.Context) (secret.Hasher, error) { return s.Key(ctx) }
	return agentserver.StrangerLimits{Shared: &quota.Strangers{Table: s.Table(), Hasher: hasher, Now: clock.System, Log: s.Log}}
}
