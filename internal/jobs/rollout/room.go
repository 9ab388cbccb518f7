package rollout

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
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

// throttledAfter is how long a revision may be in a status in which no step waits before it counts
// as throttled.
const throttledAfter = time.Minute

// throttled is what a revision waits for if nothing performs its steps.
const throttled = "No worker has taken the revision up yet: all workers of the platform are at work. " +
	"On AWS, the account's quota of concurrent executions of Lambda and RolloutConcurrency of the stack limit them."

// noteThrottled notes on the revision in flight that it is throttled, if it is: a step that is not
// performed cannot say so itself. The revision's next status removes the note.
func (r *Rollout) noteThrottled(ctx context.Context, d deployment.Deployment) error {
	at, err := r.read(ctx, d.Revision(d.Slot))
	if err != nil {
		return err
	}
	rev, neverWait := at.revision, []revision.Status{revision.Creating, revision.AwaitingBuild, revision.AwaitingDeploy}
	if !slices.Contains(neverWait, rev.Status) || rev.Reason != "" || r.Now().Sub(rev.Since[rev.Status]) < throttledAfter {
		return nil
	}
	err = r.Deployments.Advance(ctx, at.deployment, rev.Waiting(r.Now(), compute.ReasonNoCapacity, throttled))
	if errors.Is(err, record.ErrLost) {
		return nil // a worker has taken it up meanwhile
	}
	return err
}
