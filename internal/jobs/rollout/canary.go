package rollout

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// readyLimit is how long a canary waits for the release that serves if its deployment does not
// say how long a release may take to become healthy.
const readyLimit = 10 * time.Minute

// afterHealth says whether a release that has become healthy is tried as a canary first: this
// is so if its deployment asks for a canary, and has a release that serves. If the serving
// release is starting, because it is scaled or restarted, afterHealth waits for it until wait
// ends; the step is repeated while the new release would still be within its own time to
// become healthy.
func (r *Rollout) afterHealth(wait context.Context, at position, target compute.Target) (next, error) {
	if _, begun := at.revision.CanarySince(); begun {
		return canary, nil
	}
	if !at.deployment.WantsCanary(at.revision) {
		return promote, nil
	}
	serving, err := target.Await(wait, compute.Ref(at.deployment.Revision(at.deployment.Active)))
	if err != nil {
		return "", fmt.Errorf("await release that serves: %w", err)
	}
	end := at.revision.Since[revision.Deploying].Add(cmp.Or(at.deployment.ReadyLimit(), readyLimit))
	switch {
	case serving.State == compute.Healthy:
		return canary, nil
	case serving.State == compute.Progressing && r.Now().Before(end):
		return awaitHealthy, nil
	default:
		// There is no healthy release to compare it with, and it may repair the deployment.
		return promote, nil
	}
}

// canary lets the release serve a share of the threads for a while. It may be promoted by
// request meanwhile.
func (r *Rollout) canary(ctx context.Context, at position) (next, error) {
	if at.revision.Doomed() {
		return fail, nil // an earlier delivery of this step has noted why
	}
	if at.revision.Status == revision.Deployed {
		return promote, nil // promote does the remaining work
	}
	if begun, ok := at.revision.CanarySince(); ok {
		return r.awaitCanaryEnd(ctx, at, begun)
	}
	switch {
	case !at.deployment.WantsCanary(at.revision): // the deployment does not want a canary any more
		return promote, nil
	case at.deployment.Retiring != "":
		// A promotion by request overwrites it, and the rollout would forget that release.
		// Nothing else writes it while this revision has the slot.
		return again, r.retire(ctx, at.deployment, at.deployment.Retiring)
	default:
		return canary, r.Deployments.BeginCanary(ctx, at.deployment, at.revision)
	}
}

// awaitCanaryEnd waits to see whether a canary stays healthy for the rest of its time.
func (r *Rollout) awaitCanaryEnd(ctx context.Context, at position, begun time.Time) (next, error) {
	target, ok := r.target(at.deployment)
	if !ok {
		return r.cannotRun(ctx, at)
	}
	// The look takes time: a change of the revision meanwhile ends the wait that follows.
	wait, stop := r.waitForRelease(ctx, at)
	defer stop()
	status, err := look(wait, target, at.deployment, at.revision.Revision)
	left := begun.Add(at.deployment.CanaryTime()).Sub(r.Now())
	switch {
	case err != nil:
		return "", err
	case status.State == compute.Failed:
		return r.giveUp(ctx, at, status.Message)
	case status.State == compute.Absent: // lost with the process that ran it
		return canary, r.start(ctx, target, at)
	case left <= 0 && status.State == compute.Healthy:
		return promote, nil
	}
	if left > 0 {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(wait, left)
		defer cancel()
	}
	relapse, err := target.AwaitRelapse(wait, compute.Ref(at.revision.Ref))
	if err != nil {
		return "", fmt.Errorf("await end of canary: %w", err)
	}
	if relapse != "" {
		return r.giveUp(ctx, at, relapse)
	}
	return canary, nil
}

// giveUp notes why a canary is about to fail.
func (r *Rollout) giveUp(ctx context.Context, at position, why string) (next, error) {
	r.Log.WarnContext(ctx, "canary did not stay healthy", "deployment", at.deployment.Deployment, "revision", at.revision.Revision)
	note := at.revision.Note(r.Now(), revision.ReasonCanaryFailed, "It did not stay healthy as a canary. "+why)
	return fail, r.Deployments.Advance(ctx, at.deployment, note)
}

// glance is the time limit of a look at a release that does not wait for the release.
const glance = 2 * time.Second

// look returns the status of one of a deployment's releases, without waiting for it.
func look(ctx context.Context, target compute.Target, d deployment.Deployment, revisionID string) (compute.Status, error) {
	ctx, end := context.WithTimeout(ctx, glance)
	defer end()
	status, err := target.Await(ctx, compute.Ref(d.Revision(revisionID)))
	if err != nil {
		return compute.Status{}, fmt.Errorf("look at release: %w", err)
	}
	return status, nil
}
