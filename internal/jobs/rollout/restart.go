package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// restart starts the agents of a deployment again, with the present values of its secrets.
func (r *Rollout) restart(ctx context.Context, t task) (next, error) {
	all, err := r.restarted(ctx, t)
	if err != nil {
		return "", err
	}
	releases := make([]compute.Release, len(all))
	for i, at := range all {
		releases[i], err = r.release(ctx, at.deployment, at.revision)
		if unusable, ok := errors.AsType[*deployment.StartError](err); ok {
			return failed, r.Deployments.RestartFailed(ctx, at.deployment.Ref, t.Restart, unusable.Reason, unusable.Message)
		}
		if err != nil {
			return "", err
		}
	}
	for i, at := range all {
		target, err := r.restarter(at.deployment)
		if err != nil {
			return "", err
		}
		err = errors.Join(target.Restart(ctx, releases[i], t.Restart), r.undoStart(ctx, at))
		if full, ok := errors.AsType[*compute.NoCapacity](err); ok {
			return r.restartLater(ctx, at.deployment.Ref, t.Restart, full.Error())
		}
		if err != nil {
			return "", fmt.Errorf("restart release: %w", err)
		}
	}
	return awaitRestart, nil
}

// awaitRestart waits until the agents that serve were started by the restart, or by another
// start since. It also waits for a release that has no callers yet, unless the release came
// after the restart and so has the values of the restart. The rollout of a release without
// callers tells what becomes of it.
func (r *Rollout) awaitRestart(ctx context.Context, t task) (next, error) {
	all, err := r.restarted(ctx, t)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(all, position.serves) {
		return r.awaitFirst(ctx, t)
	}
	wait, stop := r.untilStopping(ctx)
	defer stop()
	for _, at := range all {
		if !at.serves() && at.revision.Revision > t.Restart { // ids sort by their time
			continue
		}
		target, err := r.restarter(at.deployment)
		if err != nil {
			return "", err
		}
		status, err := target.AwaitRestart(wait, compute.Ref(at.revision.Ref), t.Restart)
		if err != nil {
			return "", fmt.Errorf("await restart: %w", err)
		}
		switch {
		case status.State == compute.Progressing:
			return awaitRestart, nil
		case status.State == compute.Absent:
			// The restart was lost with the process that ran it, or was replaced.
			return restart, nil
		case status.State == compute.Failed && status.Reason == compute.ReasonNoCapacity && r.Now().Sub(id.Time(t.Restart)) <= roomLimit:
			// The target tries it again, which takes minutes.
			return restart, r.Deployments.RestartWaits(ctx, at.deployment.Ref, t.Restart, status.Reason, status.Message)
		case status.State == compute.Failed && at.serves():
			return failed, r.Deployments.RestartFailed(ctx, at.deployment.Ref, t.Restart, status.Reason, status.Message)
		}
	}
	return done, r.Deployments.Restarted(ctx, t.deployment(), t.Restart)
}

// awaitFirst waits if no agent serves: until the revision in flight, which gets the values of
// the restart as well, serves, or until no revision is in flight any more.
func (r *Rollout) awaitFirst(ctx context.Context, t task) (next, error) {
	d, err := r.Deployments.Get(ctx, t.deployment())
	var at position
	if err == nil {
		var stop func()
		at, stop, err = r.readForWait(ctx, d.Revision(d.Slot))
		defer stop()
	}
	switch {
	case fault.Is(err, fault.NotFound) || (err == nil && at.deployment.Status == deployment.AwaitingDelete):
		return done, nil
	case err != nil:
		return "", err
	case at.deployment.Active != "":
		return awaitRestart, nil
	case !at.deployment.Busy:
		return failed, r.Deployments.RestartFailed(ctx, at.deployment.Ref, t.Restart, at.revision.Reason, at.revision.Message)
	}
	wait, end := r.waitForRelease(ctx, at)
	defer end()
	<-wait.Done()
	return awaitRestart, nil
}

// failRestart tells of a restart whose retries ran out.
func (r *Rollout) failRestart(ctx context.Context, t task) (next, error) {
	return failed, r.Deployments.RestartFailed(ctx, t.deployment(), t.Restart, compute.ReasonInternal, internalTrouble)
}

// restarted returns the releases that a restart concerns: the active release, and the release
// that is being deployed, which may be a canary. A deployment that is deleted has no such
// releases.
func (r *Rollout) restarted(ctx context.Context, t task) ([]position, error) {
	d, err := r.Deployments.Get(ctx, t.deployment())
	if fault.Is(err, fault.NotFound) || (err == nil && d.Status == deployment.AwaitingDelete) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ids := []string{d.Active}
	if d.Busy && d.Slot != d.Active {
		ids = append(ids, d.Slot)
	}
	var all []position
	for _, id := range ids {
		if id == "" {
			continue
		}
		at, err := r.read(ctx, d.Revision(id))
		if err != nil {
			return nil, err
		}
		if at.runs() {
			all = append(all, at)
		}
	}
	return all, nil
}

// runs reports whether the revision's release must run, according to the data that was read.
func (at position) runs() bool {
	return at.deployment.Status != deployment.AwaitingDelete &&
		(at.revision.Revision == at.deployment.Active || (at.revision.Status == revision.Deploying && !at.revision.Doomed()))
}

// serves reports whether the revision's release has callers. The rollout of a release that has
// no callers yet tells what becomes of it.
func (at position) serves() bool {
	return at.revision.Revision == at.deployment.Active || at.deployment.Canary > 0
}

func (r *Rollout) restarter(d deployment.Deployment) (compute.Restarter, error) {
	target, _ := r.target(d)
	if target, ok := target.(compute.Restarter); ok {
		return target, nil
	}
	return nil, errors.New("the compute target of the deployment cannot restart releases")
}

// undoStart removes a release again that another release has replaced while it was started or
// restarted: the process that removes the release may already have done so.
func (r *Rollout) undoStart(ctx context.Context, before position) error {
	if err := r.undoStep(ctx, before); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	now, err := r.read(ctx, before.revision.Ref)
	if fault.Is(err, fault.NotFound) || (err == nil && now.runs()) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.remove(ctx, now.deployment, now.revision.Ref)
}
