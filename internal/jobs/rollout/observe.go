package rollout

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// afterPromotion says whether the revision must be observed: it is the active revision, its
// promotion is recent, there is a revision to go back to, and this server runs such releases.
func (r *Rollout) afterPromotion(ctx context.Context, at position) (next, error) {
	if at.deployment.Active != at.revision.Revision || r.Now().After(at.revision.Since[revision.Deployed].Add(r.Probation)) {
		return done, nil
	}
	if _, ok := r.target(at.deployment); !ok {
		return done, nil
	}
	may, err := r.Deployments.MayRollBack(ctx, at.deployment)
	if err != nil || !may {
		return done, err
	}
	return observe, nil
}

// observe waits to see whether the active revision stays healthy. If it does not, the previous
// revision is deployed again, unless another revision is already in flight: that revision may
// be better, and if it is not, this revision is looked at again.
func (r *Rollout) observe(ctx context.Context, at position) (next, error) {
	answer, err := r.afterPromotion(ctx, at)
	if err != nil || answer != observe {
		return answer, err
	}
	target, _ := r.target(at.deployment)
	wait, stop := r.waitForRelease(ctx, at)
	defer stop()
	relapse, err := target.AwaitRelapse(wait, compute.Ref(at.revision.Ref))
	if err != nil {
		return "", fmt.Errorf("observe release: %w", err)
	}
	if relapse == "" {
		return observe, nil
	}
	r.Log.WarnContext(ctx, "revision did not stay healthy", "deployment", at.deployment.Deployment, "revision", at.revision.Revision)
	d, err := r.Deployments.Get(ctx, at.deployment.Ref) // time has passed
	if err == nil {
		err = r.Deployments.RollBack(ctx, d, at.revision, relapse)
	}
	if errors.Is(err, record.ErrLost) {
		return observe, nil
	}
	return done, err
}

// seeRecovered checks whether the agent that serves, which had crashed, is healthy and has not
// ended for long enough. If its target does not have the agent, it is started.
func (r *Rollout) seeRecovered(ctx context.Context, d deployment.Deployment) error {
	target, ok := r.target(d)
	if !ok || d.Crashed.IsZero() || d.Status == deployment.AwaitingDelete || r.Now().Sub(d.Crashed) < r.Steady {
		return nil
	}
	status, err := look(ctx, target, d, d.Active)
	switch {
	case err != nil:
		return err
	case status.State == compute.Healthy:
		return r.Deployments.Recovered(ctx, d)
	case status.State != compute.Absent:
		return nil
	}
	return r.startActive(ctx, target, d)
}

// startActive starts the agent that serves. An agent that another release has replaced since the
// deployment was read is not started, or is removed again.
func (r *Rollout) startActive(ctx context.Context, target compute.Target, d deployment.Deployment) error {
	at, err := r.read(ctx, d.Revision(d.Active))
	if err != nil || !at.runs() {
		return err
	}
	return errors.Join(r.startAgain(ctx, target, at.deployment, at.revision), r.undoStart(ctx, at))
}
