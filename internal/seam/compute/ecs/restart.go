package ecs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs/pod"
)

// labelRestart is a label of the containers of a task definition that was made for a restart.
// Its value is the id of the restart.
const labelRestart = pod.LabelPrefix + "restart"

// Restart gives the release's secret its present values, and gives the service a task
// definition that was made for the restart. The service replaces its tasks by new ones, keeps
// all its old tasks until the new tasks pass the health check, and goes back to the previous
// task definition if they do not. If a task of the previous definition has to be started
// later, it gets the present values of its variables, too.
func (t *Target) Restart(ctx context.Context, release compute.Release, restartID string) error {
	if err := t.restart(ctx, release, restartID); err != nil {
		return fmt.Errorf("restart release %s: %w", release.Revision, noCapacity(err))
	}
	return nil
}

func (t *Target) restart(ctx context.Context, release compute.Release, restartID string) error {
	if err := t.names.check(release.Ref); err != nil {
		return err
	}
	service, err := t.describe(ctx, release.Ref)
	switch {
	case err != nil:
		return err
	case service == nil:
		return t.apply(ctx, release)
	case aws.ToString(service.Status) == draining:
		return errDraining
	}
	release.Resources = release.Resources.OrDefaults()
	newest, err := t.newestTask(ctx, release.Ref)
	if err != nil {
		return err
	}
	definition := aws.ToString(newest.TaskDefinitionArn)
	if restartOf(newest) != restartID {
		if definition, err = t.define(ctx, release, restartID); err != nil {
			return err
		}
	}
	if aws.ToString(service.TaskDefinition) != definition {
		if err := t.retireTasks(ctx, release.Ref, service, definition); err != nil {
			return err
		}
		if err := t.moveTo(ctx, release.Ref, definition); err != nil {
			return err
		}
	}
	return t.scale(ctx, release)
}

// retireTasks takes back the task definitions of earlier restarts, except the newest
// definition and the definitions that the service has, or may go back to.
func (t *Target) retireTasks(ctx context.Context, ref compute.Ref, service *types.Service, newest string) error {
	needed := []string{newest, aws.ToString(service.TaskDefinition)}
	for _, d := range service.Deployments {
		needed = append(needed, aws.ToString(d.TaskDefinition))
	}
	definitions, err := t.definitions(ctx, ref, types.TaskDefinitionStatusActive)
	if err != nil {
		return err
	}
	for _, definition := range definitions {
		if slices.Contains(needed, definition) {
			continue
		}
		if err := t.deregister(ctx, definition); err != nil {
			return err
		}
	}
	return nil
}

// moveTo makes the service replace its tasks by tasks of the given definition. Express Mode
// goes back by itself when the new tasks fail.
func (t *Target) moveTo(ctx context.Context, ref compute.Ref, definition string) error {
	if t.cfg.Compute == Express {
		_, err := t.ecs.UpdateExpressGatewayService(ctx, &ecs.UpdateExpressGatewayServiceInput{
			ServiceArn: aws.String(t.names.service(ref)), TaskDefinitionArn: aws.String(definition),
		})
		return err
	}
	_, err := t.ecs.UpdateService(ctx, &ecs.UpdateServiceInput{
		Service: aws.String(t.names.of(ref)), Cluster: aws.String(t.cfg.Cluster), TaskDefinition: aws.String(definition),
		DeploymentConfiguration: replacing(true),
	})
	return err
}

// newestTask returns the newest task definition of a release; an empty one if there is no task
// definition.
func (t *Target) newestTask(ctx context.Context, ref compute.Ref) (*types.TaskDefinition, error) {
	described, err := t.ecs.DescribeTaskDefinition(ctx, &ecs.DescribeTaskDefinitionInput{TaskDefinition: aws.String(t.names.of(ref))})
	// ECS has no error of its own for a family that does not exist.
	if _, missing := errors.AsType[*types.ClientException](err); missing {
		return &types.TaskDefinition{}, nil
	}
	if err != nil {
		return nil, err
	}
	return described.TaskDefinition, nil
}

// restartOf is the id of the restart that a task definition was made for. It is "" for the
// task definition of the release's first start.
func restartOf(definition *types.TaskDefinition) string { return labelOf(definition, labelRestart) }

// labelOf is a label of the container of a task definition; "" if it has no such label.
func labelOf(definition *types.TaskDefinition, label string) string {
	if len(definition.ContainerDefinitions) != 1 {
		return ""
	}
	return definition.ContainerDefinitions[0].DockerLabels[label]
}

// isReplacing reports whether a service replaces its tasks for a restart, or goes back to the
// earlier tasks. Only restarts give a service another task definition.
func isReplacing(service *types.Service) bool {
	return slices.ContainsFunc(service.Deployments, func(d types.Deployment) bool {
		return aws.ToString(d.TaskDefinition) != aws.ToString(service.Deployments[0].TaskDefinition)
	})
}

// replaced returns the deployment of a service whose tasks serve on while a restart replaces
// them, or goes back to them. It returns nil if nothing is replaced, or if no deployment has
// served. The tasks that a restart tries say nothing about the release.
func replaced(service *types.Service, current *types.Deployment) *types.Deployment {
	if current == nil || current.RolloutState == types.DeploymentRolloutStateCompleted || !isReplacing(service) {
		return nil
	}
	for i := range service.Deployments {
		if service.Deployments[i].RolloutState == types.DeploymentRolloutStateCompleted {
			return &service.Deployments[i]
		}
	}
	return nil
}

// AwaitRestart looks at the newest restart of the release at growing intervals until that
// restart has ended. The newest restart answers for the restarts that it has superseded.
func (t *Target) AwaitRestart(ctx context.Context, ref compute.Ref, restartID string) (compute.Status, error) {
	return t.await(ctx, ref, func(ctx context.Context, ref compute.Ref) (compute.Status, error) {
		return t.lookRestart(ctx, ref, restartID)
	})
}

// lookRestart returns the present state of the newest restart of a release. If the service has
// another definition than the newest restart, that restart has failed and the service has gone
// back. But if the caller asks about another restart, the service may still be about to get
// the newest definition, until the ready limit is over.
func (t *Target) lookRestart(ctx context.Context, ref compute.Ref, restartID string) (compute.Status, error) {
	service, err := t.describe(ctx, ref)
	if err != nil {
		return compute.Status{}, err
	}
	if service == nil || aws.ToString(service.Status) == draining {
		return t.look(ctx, ref)
	}
	newest, err := t.newestTask(ctx, ref)
	if err != nil {
		return compute.Status{}, err
	}
	if restartOf(newest) == "" {
		return t.look(ctx, ref)
	}
	if t.cfg.Compute == Express {
		return t.lookExpressRestart(ctx, service, newest)
	}
	current := primaryOf(service)
	behind := aws.ToString(service.TaskDefinition) != aws.ToString(newest.TaskDefinitionArn)
	switch {
	case behind && (restartOf(newest) == restartID || t.cfg.Now().Sub(aws.ToTime(newest.RegisteredAt)) > readyLimitOf(service)):
		return t.whyNotRestarted(ctx, service, newest, "")
	case current == nil || aws.ToString(current.TaskDefinition) != aws.ToString(newest.TaskDefinitionArn):
	case current.RolloutState == types.DeploymentRolloutStateCompleted:
		return healthy, nil
	case current.RolloutState == types.DeploymentRolloutStateFailed:
		return t.whyNotRestarted(ctx, service, newest, aws.ToString(current.RolloutStateReason))
	case t.overdue(service, current):
		return t.giveUp(ctx, ref, service, newest, current)
	}
	return compute.Status{State: compute.Progressing, Message: "its successors are starting. " + latestEvent(service, current)}, nil
}

// giveUp makes a service go back to its serving tasks, because the time of its new tasks is
// over.
func (t *Target) giveUp(ctx context.Context, ref compute.Ref, service *types.Service, newest *types.TaskDefinition, current *types.Deployment) (compute.Status, error) {
	status := *overdueFor("", latestEvent(service, current), readyLimitOf(service))
	for _, d := range service.Deployments {
		if before := aws.ToString(d.TaskDefinition); before != aws.ToString(newest.TaskDefinitionArn) {
			return status, t.moveTo(ctx, ref, before)
		}
	}
	return status, nil
}

// lookExpressRestart is lookRestart for an Express service. The newest deployment of such a
// service may still be the deployment before the restart.
func (t *Target) lookExpressRestart(ctx context.Context, service *types.Service, newest *types.TaskDefinition) (compute.Status, error) {
	deployed, err := t.newestExpress(ctx, service)
	if err != nil {
		return compute.Status{}, err
	}
	if deployed != nil && (newest.RegisteredAt == nil || deployed.CreatedAt == nil || !deployed.CreatedAt.Before(*newest.RegisteredAt)) {
		switch deployed.Status {
		case types.ServiceDeploymentStatusSuccessful:
			return healthy, nil
		case types.ServiceDeploymentStatusPending, types.ServiceDeploymentStatusInProgress:
		default:
			return t.whyNotRestarted(ctx, service, newest, aws.ToString(deployed.StatusReason))
		}
	}
	return compute.Status{State: compute.Progressing, Message: "its successors are starting"}, nil
}

// whyNotRestarted puts into words why the tasks of a restart do not serve.
func (t *Target) whyNotRestarted(ctx context.Context, service *types.Service, newest *types.TaskDefinition, reason string) (compute.Status, error) {
	ended, err := t.stoppedTasks(ctx, service, nil)
	if err != nil {
		return compute.Status{}, err
	}
	ended = slices.DeleteFunc(ended, func(task types.Task) bool {
		return aws.ToString(task.TaskDefinitionArn) != aws.ToString(newest.TaskDefinitionArn)
	})
	failure, last, err := failureIn(ended)
	if failure == nil && err == nil {
		failure, err = gaveUpFor(last, "", strings.TrimSpace(reason))
	}
	if err != nil {
		return compute.Status{}, err
	}
	return *failure, nil
}
