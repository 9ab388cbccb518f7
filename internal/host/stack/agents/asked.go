package agents

import (
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// Asked returns the agents of a stack, for functions that ask agents in the middle of a request.
func Asked(s *stack.Stack) *runner.Agents {
	return &runner.Agents{Deployments: s.Deployments(), Target: Of(s).Target, Graph: graph.NewClient(nil), Log: s.Log}
}
