package deployment

import (
	"context"

	"github.com/slipway-run/slipway/internal/agent/thread"
)

// ThreadTTL is what the configuration file says of how long threads live whose creation does not
// say it, nil for ever.
func (d Deployment) ThreadTTL() *thread.TTL {
	asked := d.Settings.Threads
	if asked == nil || asked.Minutes == 0 {
		return nil
	}
	return &thread.TTL{Strategy: thread.Strategy(asked.Strategy), Minutes: asked.Minutes}
}

// ThreadTTL is that of a deployment.
func (s *Store) ThreadTTL(ctx context.Context, workspace, deployment string) (*thread.TTL, error) {
	d, err := s.Head(ctx, Ref{Workspace: workspace, Deployment: deployment})
	if err != nil {
		return nil, err
	}
	return d.ThreadTTL(), nil
}
