package ecs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/slipway-run/slipway/internal/compute"
)

var _ compute.Restarter = (*Target)(nil)

// labelRestart is on the containers of a task definition that a restart was made with: its id.
const labelRestart = "slipway.restart"

// Restart gives the release's secret its present values, and its service a task definition that was made for the restart: the service replaces its tasks by others, keeps all
// that it has until those pass the health check, and takes the definition before again where they do not. A task of that one that has to be started later finds
// the present values of its variables, too.
func (t *Target) Restart(ctx context.Context, release compute.Release, restartID string) error {
	if err := t.restart(ctx, release, restartID); err != nil {
		return fmt.Errorf("restart release %s: %w", release.Revision, err)
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
	newest, err := t.newestTask(ctx, release.Ref)
	if err != nil {
		return err
	}
	definition := aws.ToString(newest.TaskDefinitionArn)
	if restartOf(newest) != restartID {
		release.Resources = release.Resources.OrDefaults()
		if definition, err = t.redefine(ctx, release, restartID); err != nil {
			return err
		}
	}
	if aws.ToString(service.TaskDefinition) == definition {
		return nil
	}
	return t.moveTo(ctx, release.Ref, definition)
}

// redefine gives the secret its present values and registers a task definition for a restart.
func (t *Target) redefine(ctx context.Context, release compute.Release, restartID string) (string, error) {
	env := environmentOf(release)
	secretARN, err := t.storeSecret(ctx, release.Ref, env.secret)
	if err != nil {
		return "", err
	}
	input := t.taskOf(release, env, secretARN)
	input.ContainerDefinitions[0].DockerLabels = map[string]string{labelRestart: restartID}
	made, err := t.ecs.RegisterTaskDefinition(ctx, input)
	if err != nil {
		return "", err
	}
	return aws.ToString(made.TaskDefinition.TaskDefinitionArn), nil
}

// moveTo has the service replace its tasks by those of a definition. Express Mode goes back by itself when they fail.
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

// newestTask returns the newest task definition of a release; an empty one when there is none.
func (t *Target) newestTask(ctx context.Context, ref compute.Ref) (*types.TaskDefinition, error) {
	found, err := t.ecs.DescribeTaskDefinition(ctx, &ecs.DescribeTaskDefinitionInput{TaskDefinition: aws.String(t.names.of(ref))})
	// ECS has no error of its own for a family that is not there.
	if _, missing := errors.AsType[*types.ClientException](err); missing {
		return &types.TaskDefinition{}, nil
	}
	if err != nil {
		return nil, err
	}
	return found.TaskDefinition, nil
}

// restartOf is the id of the restart that a task definition was made for, "" of that of the release's first start.
func restartOf(definition *types.TaskDefinition) string {
	if len(definition.ContainerDefinitions) != 1 {
		return ""
	}
	return definition.ContainerDefinitions[0].DockerLabels[labelRestart]
}

// AwaitRestart looks at the newest restart of the release at growing intervals until it has ended.
func (t *Target) AwaitRestart(ctx context.Context, ref compute.Ref, _ string) (compute.Status, error) {
	return t.await(ctx, ref, t.lookRestart)
}

// lookRestart returns how the newest restart of a release is now. The service has gone back to another definition when it has failed.
func (t *Target) lookRestart(ctx context.Context, ref compute.Ref) (compute.Status, error) {
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
	switch {
	case aws.ToString(service.TaskDefinition) != aws.ToString(newest.TaskDefinitionArn):
		return t.whyNotRestarted(ctx, service, newest, "")
	case current == nil || aws.ToString(current.TaskDefinition) != aws.ToString(newest.TaskDefinitionArn):
	case current.RolloutState == types.DeploymentRolloutStateCompleted:
		return healthy, nil
	case current.RolloutState == types.DeploymentRolloutStateFailed:
		return t.whyNotRestarted(ctx, service, newest, rolloutReason(current))
	case t.overdue(service, current):
		return t.giveUp(ctx, ref, service, newest, current)
	}
	return compute.Status{State: compute.Progressing, Message: "its successors are starting. " + latestEvent(service, current)}, nil
}

// giveUp has a service whose new tasks have had their time go back to those that serve.
func (t *Target) giveUp(ctx context.Context, ref compute.Ref, service *types.Service, newest *types.TaskDefinition, current *types.Deployment) (compute.Status, error) {
	status := *overdueFor("", latestEvent(service, current), t.readyLimit(service))
	for _, d := range service.Deployments {
		if before := aws.ToString(d.TaskDefinition); before != aws.ToString(newest.TaskDefinitionArn) {
			return status, t.moveTo(ctx, ref, before)
		}
	}
	return status, nil
}

// lookExpressRestart is lookRestart of an Express service, whose newest deployment may still be that before the restart.
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

// whyNotRestarted puts into words why the tasks of a restart did not come to serve.
func (t *Target) whyNotRestarted(ctx context.Context, service *types.Service, newest *types.TaskDefinition, reason string) (compute.Status, error) {
	ended, err := t.stoppedTasks(ctx, service, nil)
	if err != nil {
		return compute.Status{}, err
	}
	last := ""
	for _, task := range ended {
		if aws.ToString(task.TaskDefinitionArn) != aws.ToString(newest.TaskDefinitionArn) {
			continue
		}
		failure, err := taskFailure(task)
		if err != nil {
			return compute.Status{}, err
		}
		if failure != nil {
			return *failure, nil
		}
		last = words(task)
	}
	failure, err := gaveUpFor(last, "", strings.TrimSpace(reason))
	if err != nil {
		return compute.Status{}, err
	}
	return *failure, nil
}
