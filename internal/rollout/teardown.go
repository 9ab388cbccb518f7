package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/compute"
	"github.com/slipway-run/slipway/internal/deployment"
	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/revision"
	"github.com/slipway-run/slipway/internal/workflow"
)

// bearing decides about trouble with something that a deployment runs on: whether it ends the step, or what is in the way is left behind.
type bearing func(context.Context, deployment.Deployment, error) error

// insist leaves nothing behind.
func insist(_ context.Context, _ deployment.Deployment, err error) error { return err }

// bear leaves behind what a deployment that was deleted by force runs on and what cannot be removed. Who deleted it by force finds it in the log.
func (r *Rollout) bear(ctx context.Context, d deployment.Deployment, err error) error {
	if err == nil || !d.Forced || ctx.Err() != nil {
		return err
	}
	r.Log.ErrorContext(ctx, "deployment deleted by force leaves something behind", "deployment", d.Deployment, "error", err)
	return nil
}

// stopReleases ends the rollout in flight and stops what serves. Builds and older releases follow when their revisions are erased.
func (r *Rollout) stopReleases(ctx context.Context, ref deployment.Ref, decide bearing) error {
	d, err := r.Deployments.GetHidden(ctx, ref)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if d.Busy {
		err := r.Workflow.Stop(ctx, workflow.Rollout, d.Slot, "The deployment was deleted.")
		if err != nil && !errors.Is(err, workflow.ErrNotFound) {
			return fmt.Errorf("stop rollout: %w", err)
		}
	}
	for _, id := range []string{d.Slot, d.Active, d.Retiring} {
		if err := decide(ctx, d, r.remove(ctx, d, ref.Revision(id))); err != nil {
			return err
		}
	}
	return nil
}

// target is what runs a deployment's releases; not ok when nothing does here.
func (r *Rollout) target(d deployment.Deployment) (_ compute.Target, ok bool) {
	if d.Remote() {
		return r.Listeners, true
	}
	target, ok := r.Targets[d.Source]
	return target, ok
}

func (r *Rollout) remove(ctx context.Context, d deployment.Deployment, ref revision.Ref) error {
	target, ok := r.target(d)
	if !ok || ref.Revision == "" {
		return nil
	}
	if err := target.Remove(ctx, compute.Ref(ref)); err != nil {
		return fmt.Errorf("remove release: %w", err)
	}
	return nil
}

func (r *Rollout) eraseThreads(ctx context.Context, ref deployment.Ref) (next, error) {
	// What creates threads goes first.
	for _, kept := range r.Kept {
		if err := kept.Erase(ctx, ref.Workspace, ref.Deployment); err != nil {
			return "", err
		}
	}
	more, err := r.Threads.Erase(ctx, ref.Workspace, ref.Deployment)
	if more {
		return eraseThreads, err
	}
	return eraseDeployment, err
}

func (r *Rollout) eraseDeployment(ctx context.Context, ref deployment.Ref, decide bearing) (next, error) {
	d, err := r.Deployments.GetHidden(ctx, ref)
	if fault.Is(err, fault.NotFound) {
		return done, nil
	}
	if err != nil {
		return "", err
	}
	more, err := r.Deployments.EraseRevisions(ctx, ref, func(rev revision.Ref) error { return decide(ctx, d, r.forget(ctx, d, rev)) })
	if more {
		return eraseDeployment, err
	}
	return done, err
}

// forget removes all that a revision has outside of the table.
func (r *Rollout) forget(ctx context.Context, d deployment.Deployment, ref revision.Ref) error {
	return errors.Join(r.remove(ctx, d, ref), r.Builder.Remove(ctx, ref.Revision), r.Logs.Remove(ref.Revision))
}

// Rescue looks after the rollouts and teardowns that took too long: a workflow that was never started is started, one that ended without
// ending its revision is made good. It also sees which agents that had crashed have recovered. What is left when ctx ends, a step that was
// begun included, is for the next Rescue, and no error.
func (r *Rollout) Rescue(ctx context.Context, dueBy time.Time) error {
	return r.Deployments.Overdue(ctx, dueBy, func(ctx context.Context, d deployment.Deployment) error {
		return errors.Join(r.rescue(ctx, d), r.seeRecovered(ctx, d))
	})
}

func (r *Rollout) rescue(ctx context.Context, d deployment.Deployment) error {
	if err := r.Deployments.Renew(ctx, d); err != nil {
		return err
	}
	if d.Retiring != "" && d.Status != deployment.AwaitingDelete {
		if err := r.repeat(ctx, "Promote", d.Ref, d.Active); err != nil {
			return err
		}
	}
	if !d.Busy && d.Status != deployment.AwaitingDelete {
		return nil
	}
	machine, name, start := workflow.Rollout, d.Slot, r.Deployments.StartRollout
	if d.Status == deployment.AwaitingDelete {
		machine, name = workflow.Teardown, d.Deployment
		start = func(ctx context.Context, d deployment.Deployment) error {
			return r.Deployments.StartTeardown(ctx, d.Ref)
		}
	}
	execution, err := r.Workflow.Describe(ctx, machine, name)
	switch {
	case errors.Is(err, workflow.ErrNotFound):
		return start(ctx, d)
	case err != nil:
		return fmt.Errorf("describe workflow: %w", err)
	case execution.Status == workflow.Running:
		return nil
	case machine == workflow.Rollout:
		return r.repeat(ctx, "Fail", d.Ref, d.Slot)
	default:
		return r.teardown(ctx, d.Ref)
	}
}

// repeat performs a step of a rollout whose workflow did not.
func (r *Rollout) repeat(ctx context.Context, step string, ref deployment.Ref, revisionID string) error {
	_, err := r.step(ctx, task{Step: step, Task: deployment.Task{Workspace: ref.Workspace, Deployment: ref.Deployment, Revision: revisionID}})
	return err
}

// teardown performs the steps of a teardown whose workflow has given up.
func (r *Rollout) teardown(ctx context.Context, ref deployment.Ref) error {
	err := r.stopReleases(ctx, ref, r.bear)
	for answer := eraseThreads; err == nil && answer != done; {
		if answer == eraseThreads {
			answer, err = r.eraseThreads(ctx, ref)
		} else {
			answer, err = r.eraseDeployment(ctx, ref, r.bear)
		}
	}
	return err
}
