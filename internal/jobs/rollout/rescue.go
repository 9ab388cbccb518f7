package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// Rescue looks after the rollouts and teardowns that took too long: it starts a workflow that
// was never started, and makes good a workflow that ended without ending its revision. It also
// checks which agents that had crashed have recovered, and starts the agents that Restore could
// not start. The work that is left when ctx ends, including a step that was begun, is for the next
// Rescue, and is not an error.
func (r *Rollout) Rescue(ctx context.Context, dueBy time.Time) error {
	overdue := r.Deployments.Overdue(ctx, dueBy, func(ctx context.Context, d deployment.Deployment) error {
		return errors.Join(r.rescue(ctx, d), r.seeRecovered(ctx, d))
	})
	return errors.Join(overdue, r.startMissing(ctx))
}

func (r *Rollout) rescue(ctx context.Context, d deployment.Deployment) error {
	if err := r.Deployments.Renew(ctx, d); err != nil {
		return err
	}
	var retired error
	if d.Retiring != "" && d.Status != deployment.AwaitingDelete {
		retired = r.repeat(ctx, "Promote", d.Ref, d.Active)
	}
	return errors.Join(retired, r.rescueWorkflow(ctx, d))
}

// rescueWorkflow looks after the rollout or teardown that the deployment waits for.
func (r *Rollout) rescueWorkflow(ctx context.Context, d deployment.Deployment) error {
	if !d.Busy && d.Status != deployment.AwaitingDelete {
		return nil
	}
	machine, name, start := workflow.Rollout, d.Slot, r.Deployments.StartRollout
	if d.Status == deployment.AwaitingDelete {
		machine, name, start = workflow.Teardown, d.TeardownName(), r.Deployments.StartTeardown
	}
	execution, err := r.Workflow.Describe(ctx, machine, name)
	switch {
	case errors.Is(err, workflow.ErrNotFound):
		return start(ctx, d)
	case err != nil:
		return fmt.Errorf("describe workflow: %w", err)
	case execution.Status == workflow.Running && machine == workflow.Rollout:
		return r.noteThrottled(ctx, d)
	case execution.Status == workflow.Running:
		return nil
	case machine == workflow.Rollout:
		return r.repeat(ctx, "Fail", d.Ref, d.Slot)
	default:
		return r.teardown(ctx, d)
	}
}

// repeat performs a step of a rollout whose workflow did not perform it.
func (r *Rollout) repeat(ctx context.Context, step string, ref deployment.Ref, revisionID string) error {
	_, err := r.perform(ctx, task{Step: step, Task: deployment.Task{Workspace: ref.Workspace, Deployment: ref.Deployment, Revision: revisionID}})
	return err
}

// teardown performs the steps of a teardown whose workflow has given up, as far as their time
// has come.
func (r *Rollout) teardown(ctx context.Context, d deployment.Deployment) error {
	t := task{Task: deployment.Task{Workspace: d.Workspace, Deployment: d.Deployment, Teardown: d.Teardown}, rescue: true}
	answer, err := r.stopReleases(ctx, t)
	if err == nil && answer.Next == await {
		answer, err = r.beginPurge(ctx, t)
	}
	for err == nil && answer.Next != done && answer.Next != await {
		t.Step = string(answer.Next)
		answer, err = r.perform(ctx, t)
	}
	return err
}
