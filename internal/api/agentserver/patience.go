package agentserver

import (
	"context"

	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// askAgent asks an agent a question that belongs to no run, for a request of a workspace. A
// request that waits for long takes one of the workspace's places for connections.
func (s server) askAgent(ctx context.Context, workspace string, ask func(context.Context) error) error {
	take := func(ctx context.Context) (leave func(), err error) { return s.mux.Place(ctx, workspace) }
	return quota.Patiently(ctx, s.Log, s.Patience, take, ask)
}
