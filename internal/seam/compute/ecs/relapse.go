package ecs

import (
	"context"
	"fmt"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

var _ compute.Minder = (*Target)(nil)

// AwaitRelapse looks at intervals until a replica has ended by the release's own fault. The
// load balancer's health check ends replicas that do not answer.
func (t *Target) AwaitRelapse(ctx context.Context, ref compute.Ref) (string, error) {
	for {
		seen, err := t.look(ctx, ref)
		switch {
		case clock.IsOver(ctx, err):
			return "", nil
		case err != nil:
			return "", fmt.Errorf("mind release %s: %w", ref.Revision, err)
		case seen.State == compute.Failed:
			return seen.Message, nil
		}
		select {
		case <-t.cfg.After(lastPoll):
		case <-ctx.Done():
			return "", nil
		}
	}
}
