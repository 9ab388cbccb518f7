package ecs

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// firstPoll and lastPoll bound the time between two looks at a release.
const firstPoll, lastPoll = time.Second, 8 * time.Second

var (
	absent   = compute.Status{State: compute.Absent, Message: "it does not run in this account"}
	stopping = compute.Status{State: compute.Absent, Message: "it is being stopped"}
	healthy  = compute.Status{State: compute.Healthy}
)

// Await looks at the release at growing intervals until it is not Progressing.
func (t *Target) Await(ctx context.Context, ref compute.Ref) (compute.Status, error) {
	return t.await(ctx, ref, t.look)
}

// await calls look, which is one of several ways to look at a release, until the release is
// not Progressing. An Express service that serves is Progressing until it scales.
func (t *Target) await(ctx context.Context, ref compute.Ref, look func(context.Context, compute.Ref) (compute.Status, error)) (compute.Status, error) {
	if err := t.names.check(ref); err != nil {
		return compute.Status{}, fmt.Errorf("await release %s: %w", ref.Revision, err)
	}
	status := compute.Status{State: compute.Progressing, Message: "it is starting"}
	for pause := firstPoll; ; pause = min(pause*3/2, lastPoll) {
		seen, err := look(ctx, ref)
		if err == nil && seen.State == compute.Healthy && t.cfg.Compute == Express {
			seen, err = t.scaleExpress(ctx, ref)
		}
		switch {
		case clock.IsOver(ctx, err):
			return status, nil
		case err != nil:
			return compute.Status{}, fmt.Errorf("await release %s: %w", ref.Revision, err)
		case seen.State != compute.Progressing:
			return seen, nil
		}
		status = seen
		select {
		case <-t.cfg.After(pause):
		case <-ctx.Done():
			return status, nil
		}
	}
}

// AwaitRelapse looks at intervals until a replica has ended by the release's own fault. The
// load balancer's health check ends replicas that do not answer.
func (t *Target) AwaitRelapse(ctx context.Context, ref compute.Ref) (string, error) {
	for {
		seen, err := t.look(ctx, ref)
		switch {
		case clock.IsOver(ctx, err):
			return "", nil
		case err != nil:
			return "", fmt.Errorf("mind release %s: %w", ref.Revision, err)
		case seen.State == compute.Failed:
			return seen.Message, nil
		}
		select {
		case <-t.cfg.After(lastPoll):
		case <-ctx.Done():
			return "", nil
		}
	}
}

// look returns the release's status as it is now.
func (t *Target) look(ctx context.Context, ref compute.Ref) (compute.Status, error) {
	service, err := t.describe(ctx, ref)
	switch {
	case err != nil:
		return compute.Status{}, err
	case service == nil:
		return absent, nil
	case aws.ToString(service.Status) == draining:
		return stopping, nil
	}
	current := primaryOf(service)
	current = cmp.Or(replaced(service, current), current)
	ready, err := t.ready(ctx, ref, service, current)
	if err != nil {
		return compute.Status{}, err
	}
	if ready {
		return healthy, nil
	}
	failed, err := t.failureOf(ctx, service, current)
	if err != nil {
		return compute.Status{}, err
	}
	if failed != nil {
		return *failed, nil
	}
	return compute.Status{
		State:   compute.Progressing,
		Message: fmt.Sprintf("%d of %d replicas run. %s", service.RunningCount, service.DesiredCount, latestEvent(service, current)),
	}, nil
}

// primaryOf returns the deployment of the service that is to become steady; nil at the
// service's very beginning.
func primaryOf(service *types.Service) *types.Deployment {
	for i := range service.Deployments {
		if aws.ToString(service.Deployments[i].Status) == primary {
			return &service.Deployments[i]
		}
	}
	return nil
}

// ready reports whether all replicas run and pass the health check.
func (t *Target) ready(ctx context.Context, ref compute.Ref, service *types.Service, current *types.Deployment) (bool, error) {
	if t.cfg.Compute == Express {
		return t.expressReady(ctx, service)
	}
	switch {
	case current == nil:
		return false, nil
	case isReplacing(service): // the tasks of one deployment leave when the tasks of the other pass
		return t.pass(ctx, ref, service.DesiredCount)
	case current.RolloutState == types.DeploymentRolloutStateFailed || current.RunningCount < current.DesiredCount:
		return false, nil
	default:
		return t.pass(ctx, ref, current.DesiredCount)
	}
}

// pass reports whether at least the wanted number of tasks, which must not be 0, pass the
// health check.
func (t *Target) pass(ctx context.Context, ref compute.Ref, wanted int32) (bool, error) {
	if wanted == 0 {
		return false, nil
	}
	group, err := t.targetGroup(ctx, ref)
	if err != nil || group == "" {
		return false, err
	}
	health, err := t.elb.DescribeTargetHealth(ctx, &elb.DescribeTargetHealthInput{TargetGroupArn: aws.String(group)})
	if err != nil {
		return false, err
	}
	passing := int32(0)
	for _, target := range health.TargetHealthDescriptions {
		if target.TargetHealth != nil && target.TargetHealth.State == elbtypes.TargetHealthStateEnumHealthy {
			passing++
		}
	}
	return passing >= wanted, nil
}

// overdue reports whether the time of the deployment is over. A deployment that was completed
// once is not overdue: ECS starts again the tasks that have ended since. A deployment to which
// a service has gone back is not overdue either; such a deployment is older than the one that
// it replaces.
func (t *Target) overdue(service *types.Service, current *types.Deployment) bool {
	if current.CreatedAt == nil || current.RolloutState == types.DeploymentRolloutStateCompleted {
		return false
	}
	for _, d := range service.Deployments {
		if d.CreatedAt != nil && d.CreatedAt.After(*current.CreatedAt) {
			return false
		}
	}
	return t.cfg.Now().Sub(*current.CreatedAt) > readyLimitOf(service)
}

// latestEvent returns the newest message of the service since the deployment began.
func latestEvent(service *types.Service, current *types.Deployment) string {
	for _, event := range service.Events { // newest first
		if current == nil || current.CreatedAt == nil || event.CreatedAt == nil || !event.CreatedAt.Before(*current.CreatedAt) {
			return aws.ToString(event.Message)
		}
	}
	return ""
}

// stoppedTasks returns the tasks of the deployment that have ended; ECS remembers them for an hour.
func (t *Target) stoppedTasks(ctx context.Context, service *types.Service, current *types.Deployment) ([]types.Task, error) {
	listed, err := t.ecs.ListTasks(ctx, &ecs.ListTasksInput{
		Cluster: aws.String(t.cfg.Cluster), ServiceName: service.ServiceName, DesiredStatus: types.DesiredStatusStopped, MaxResults: aws.Int32(100),
	})
	if err != nil || len(listed.TaskArns) == 0 {
		return nil, err
	}
	described, err := t.ecs.DescribeTasks(ctx, &ecs.DescribeTasksInput{Cluster: aws.String(t.cfg.Cluster), Tasks: listed.TaskArns})
	if err != nil {
		return nil, err
	}
	var ended []types.Task
	for _, task := range described.Tasks {
		if current == nil || aws.ToString(task.StartedBy) == aws.ToString(current.Id) {
			ended = append(ended, task)
		}
	}
	return ended, nil
}
