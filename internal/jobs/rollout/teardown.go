package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// leaveBehind returns nil for an error with a resource that a deployment runs on, if the resource
// may be left behind: in a rescue of a deployment that was deleted by force. The log shows the
// error to the person who deleted the deployment.
func (r *Rollout) leaveBehind(ctx context.Context, t task, d deployment.Deployment, err error) error {
	if err == nil || !t.rescue || !d.Forced || ctx.Err() != nil {
		return err
	}
	r.Log.ErrorContext(ctx, "deployment deleted by force leaves something behind", "deployment", d.Deployment, "error", err)
	return nil
}

// undoStep undoes the work that a step has started for a deployment that was deleted
// meanwhile, because the teardown may already have passed this point. It does so even for a
// step that was cut off, and for a deployment that lives again, because that deployment has a
// new revision.
func (r *Rollout) undoStep(ctx context.Context, at position) error {
	ctx = context.WithoutCancel(ctx)
	d, err := r.Deployments.Get(ctx, at.deployment.Ref)
	switch {
	case fault.Is(err, fault.NotFound) || (err == nil && d.Doomed()):
		return r.forget(ctx, at.deployment, at.revision.Ref)
	case err != nil || d.Teardown == at.deployment.Teardown:
		return err
	}
	return r.cutOff(ctx, at.deployment, at.revision.Ref)
}

// cutOff stops everything that a revision runs whose deployment was deleted, and may live
// again. A revision that was deployed keeps its build.
func (r *Rollout) cutOff(ctx context.Context, d deployment.Deployment, ref revision.Ref) error {
	_, rev, err := r.Deployments.GetRevision(ctx, ref)
	switch {
	case err != nil:
		return err
	case rev.Status == revision.Deployed:
		return r.remove(ctx, d, ref)
	}
	return r.discard(ctx, d, ref)
}

// discard removes the release and the build of a revision.
func (r *Rollout) discard(ctx context.Context, d deployment.Deployment, ref revision.Ref) error {
	return errors.Join(r.remove(ctx, d, ref), r.Builder.Remove(ctx, ref.Revision))
}

// readTeardown reads the deployment that a step of a teardown is about. over is true for a teardown
// after which another teardown began, and for a deployment that lives again.
func (r *Rollout) readTeardown(ctx context.Context, t task) (d deployment.Deployment, over bool, err error) {
	d, err = r.Deployments.GetHidden(ctx, t.deployment())
	return d, err == nil && (d.Status != deployment.AwaitingDelete || d.Teardown != t.Teardown), err
}

// stopReleases ends the rollout in flight and stops the releases that serve. Builds and older
// releases follow when their revisions are erased, which is after the recovery window.
func (r *Rollout) stopReleases(ctx context.Context, t task) (result, error) {
	return record.Retry(ctx, func(ctx context.Context) (result, error) { return r.stop(ctx, t) })
}

func (r *Rollout) stop(ctx context.Context, t task) (result, error) {
	d, over, err := r.readTeardown(ctx, t)
	if fault.Is(err, fault.NotFound) {
		return result{Next: eraseThreads}, nil
	}
	if err != nil || over {
		return result{Next: done}, err
	}
	if d.Busy {
		err := r.Workflow.Stop(ctx, workflow.Rollout, d.Slot, "The deployment was deleted.")
		if err != nil && !errors.Is(err, workflow.ErrNotFound) {
			return result{}, fmt.Errorf("stop rollout: %w", err)
		}
		if err := r.leaveBehind(ctx, t, d, r.Builder.Remove(ctx, d.Slot)); err != nil {
			return result{}, err
		}
	}
	for _, id := range append([]string{d.Slot, d.Active, d.Retiring}, d.Leftover...) {
		if err := r.leaveBehind(ctx, t, d, r.remove(ctx, d, d.Revision(id))); err != nil {
			return result{}, err
		}
	}
	if d.Doomed() {
		return result{Next: eraseThreads}, nil
	}
	return result{await, clock.Format(d.PurgeAt)}, r.Deployments.Rest(ctx, d)
}

// beginPurge begins to erase the remaining data of a deployment when its recovery window is
// over.
func (r *Rollout) beginPurge(ctx context.Context, t task) (result, error) {
	return record.Retry(ctx, func(ctx context.Context) (result, error) {
		d, over, err := r.readTeardown(ctx, t)
		switch {
		case fault.Is(err, fault.NotFound) || (err == nil && d.Doomed() && !over):
			return result{Next: eraseThreads}, nil
		case err != nil || over:
			return result{Next: done}, err
		case r.Now().Before(d.PurgeAt):
			return result{await, clock.Format(d.PurgeAt)}, nil
		}
		return result{Next: eraseThreads}, r.Deployments.BeginPurge(ctx, d)
	})
}

func (r *Rollout) eraseThreads(ctx context.Context, t task) (result, error) {
	d, over, err := r.readTeardown(ctx, t)
	switch {
	case fault.Is(err, fault.NotFound): // there is nothing to erase, or only data that came late
	case err != nil:
		return result{}, err
	case over || !d.Doomed():
		return result{Next: done}, nil
	}
	// The stores that create threads are erased first.
	for _, kept := range r.Kept {
		if err := kept.Erase(ctx, t.Workspace, t.Deployment); err != nil {
			return result{}, err
		}
	}
	for _, large := range []PageEraser{r.Items, r.Threads} {
		more, err := large.Erase(ctx, t.Workspace, t.Deployment)
		if more || err != nil {
			return result{Next: eraseThreads}, err
		}
	}
	return result{Next: eraseDeployment}, nil
}

func (r *Rollout) eraseDeployment(ctx context.Context, t task) (result, error) {
	d, over, err := r.readTeardown(ctx, t)
	switch {
	case fault.Is(err, fault.NotFound) || (err == nil && (over || !d.Doomed())):
		return result{Next: done}, nil
	case err != nil:
		return result{}, err
	}
	var due time.Time
	more, err := r.Deployments.EraseRevisions(ctx, d.Ref, func(rev revision.Ref) (err error) {
		if err = r.leaveBehind(ctx, t, d, r.forget(ctx, d, rev)); err == nil {
			due, err = r.seeGone(ctx, d, rev)
		}
		return err
	})
	if errors.Is(err, errLingers) {
		return result{await, clock.Format(due)}, nil
	}
	if more {
		return result{Next: eraseDeployment}, err
	}
	return result{Next: done}, err
}

// longestAbsence is the longest time between two looks at a release that another party has not
// stopped. An execution of Step Functions has at most 25,000 events, and each look adds 23, so
// looks at each hour would end the teardown after six weeks.
const longestAbsence = 24 * time.Hour

// errLingers stops the erasure of revisions at a revision whose release is not gone.
var errLingers = errors.New("the release is not gone")

// seeGone returns errLingers, and when to look again, for a release that another party has not
// stopped yet. A deployment that was deleted by force does not wait for it.
func (r *Rollout) seeGone(ctx context.Context, d deployment.Deployment, ref revision.Ref) (due time.Time, err error) {
	target, _ := r.target(d)
	distant, ok := target.(compute.Distant)
	if !ok || d.Forced {
		return due, nil
	}
	since, err := distant.RemovedSince(ctx, compute.Ref(ref))
	if err != nil || since.IsZero() {
		return due, err
	}
	now := r.Now()
	return now.Add(max(time.Second, min(now.Sub(since)/2, longestAbsence))), errLingers
}

// forget removes all data of a revision that is outside of the table.
func (r *Rollout) forget(ctx context.Context, d deployment.Deployment, ref revision.Ref) error {
	return errors.Join(r.discard(ctx, d, ref), r.Logs.Remove(ref.Revision))
}
