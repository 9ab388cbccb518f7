package rollout

import (
	"context"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// startMissing starts the serving releases that Restore could not start. It ends at the first
// failure: the table may still take no write, so the other releases would fail, too.
func (r *Rollout) startMissing(ctx context.Context) error {
	for ref := range r.missing.Range {
		if ctx.Err() != nil {
			return nil
		}
		if err := r.startIfMissing(ctx, ref.(revision.Ref)); err != nil {
			return err
		}
		r.missing.Delete(ref)
	}
	return nil
}

// startIfMissing starts a release if it serves and its target does not have it. A crash that the
// deployment's record tells is the business of seeRecovered.
func (r *Rollout) startIfMissing(ctx context.Context, ref revision.Ref) error {
	d, err := r.Deployments.Get(ctx, deployment.Ref{Workspace: ref.Workspace, Deployment: ref.Deployment})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	target, ok := r.target(d)
	if err != nil || !ok || d.Active != ref.Revision || !d.Crashed.IsZero() || d.Status == deployment.AwaitingDelete {
		return err
	}
	status, err := look(ctx, target, d, d.Active)
	if err != nil || status.State != compute.Absent {
		return err
	}
	return r.startActive(ctx, target, d)
}
