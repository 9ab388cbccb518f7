package rollout

import (
	"context"
	"errors"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// roomLimit is how long a revision waits in one status, or a restart waits, for a quota of the
// platform's account. It is shorter than the time for which the machines repeat the step, so
// that work that has waited in vain reports the quota.
const roomLimit = 6 * time.Hour

// awaitRoom makes the machine repeat a step later because there is no room for it now, and
// notes on the revision what it waits for. If a revision has waited too long, awaitRoom notes
// that it fails because of this.
func (r *Rollout) awaitRoom(ctx context.Context, at position, reason, message string) error {
	inVain, err := r.noteRoom(ctx, at, reason, message)
	if err != nil || inVain {
		return err
	}
	return &workflow.TaskError{Name: workflow.ErrorNoCapacity, Cause: message}
}

// noteRoom notes on the revision what it waits for. inVain is set if the revision has waited too
// long: then noteRoom has noted that it fails because of this.
func (r *Rollout) noteRoom(ctx context.Context, at position, reason, message string) (inVain bool, err error) {
	rev := at.revision
	if r.Now().Sub(rev.Since[rev.Status]) > roomLimit {
		return true, r.Deployments.Advance(ctx, at.deployment, rev.Note(r.Now(), reason, message))
	}
	if rev.Waits && rev.Message == message {
		return false, nil
	}
	return false, r.Deployments.Advance(ctx, at.deployment, rev.Waiting(r.Now(), reason, message))
}

// hasRoom removes the note of awaitRoom from the revision.
func (r *Rollout) hasRoom(ctx context.Context, at position) error {
	if !at.revision.Waits {
		return nil
	}
	return r.Deployments.Advance(ctx, at.deployment, at.revision.Waited(r.Now()))
}

// startLater starts again a release that the compute target has given up because there was no
// room for it, and looks at it later.
func (r *Rollout) startLater(ctx context.Context, target compute.Target, at position, message string) (next, error) {
	err := r.awaitRoom(ctx, at, compute.ReasonNoCapacity, message)
	if err == nil {
		return fail, nil // the reason was already noted
	}
	return "", errors.Join(err, r.apply(ctx, target, at.deployment, at.revision))
}

// restartLater makes the machine repeat a restart later because there is no room for it now, and
// tells what the restart waits for. A restart that has waited too long has failed.
func (r *Rollout) restartLater(ctx context.Context, d deployment.Ref, restartID, message string) (next, error) {
	if r.Now().Sub(id.Time(restartID)) > roomLimit {
		return failed, r.Deployments.RestartFailed(ctx, d, restartID, compute.ReasonNoCapacity, message)
	}
	if err := r.Deployments.RestartWaits(ctx, d, restartID, compute.ReasonNoCapacity, message); err != nil {
		return "", err
	}
	return "", &workflow.TaskError{Name: workflow.ErrorNoCapacity, Cause: message}
}
