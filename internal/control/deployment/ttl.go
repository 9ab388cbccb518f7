package deployment

import (
	"context"

	"github.com/slipway-run/slipway/internal/agent/thread"
)

// ThreadTTL is the configuration file's time to live for threads whose creation does not set
// it; nil: they live for ever.
func (d Deployment) ThreadTTL() *thread.TTL {
	asked := d.Settings.Threads
	if asked == nil || asked.Minutes == 0 {
		return nil
	}
	return &thread.TTL{Strategy: thread.Strategy(asked.Strategy), Minutes: asked.Minutes}
}

// ThreadTTL returns the ThreadTTL of a deployment.
func (s *Store) ThreadTTL(ctx context.Context, workspace, deployment string) (*thread.TTL, error) {
	d, err := s.Head(ctx, Ref{Workspace: workspace, Deployment: deployment})
	if err != nil {
		return nil, err
	}
	return d.ThreadTTL(), nil
}
