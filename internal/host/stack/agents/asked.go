package agents

import (
	"context"

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
	return &runner.Agents{Deployments: s.Deployments(), Target: Of(s).Target, Graph: graph.NewClient(nil), Log: s.Log}
}

// Strangers bounds the questions about strangers for all processes of a stack together.
func Strangers(s *stack.Stack) agentserver.StrangerLimits {
	hasher := func(ctx context.Context) (secret.Hasher, error) { return s.Key(ctx) }
	return agentserver.StrangerLimits{Shared: &quota.Strangers{Table: s.Table(), Hasher: hasher, Now: clock.System, Log: s.Log}}
}
