package ecs

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	scalingtypes "github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs/metric"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs/pod"
)

// share is the part of the runs a replica is meant for that scaling aims at. The rest is for the
// runs that begin before a further replica serves: CloudWatch waits for three minutes above the
// target, and Fargate needs one or two to start a task.
const share = 0.8

const (
	scalingNamespace = scalingtypes.ServiceNamespaceEcs
	scalingDimension = scalingtypes.ScalableDimensionECSServiceDesiredCount
)

// scale lets the service have between MinScale and MaxScale tasks, and makes their number follow
// the number of runs. It replaces what an earlier version made. An Express service scales by
// scaleExpress.
func (t *Target) scale(ctx context.Context, release compute.Release) error {
	if t.cfg.Compute == Express || !release.Resources.Scales() {
		return nil
	}
	_, err := t.scaling.RegisterScalableTarget(ctx, &applicationautoscaling.RegisterScalableTargetInput{
		ServiceNamespace: scalingNamespace, ScalableDimension: scalingDimension, ResourceId: aws.String(t.names.scalable(release.Ref)),
		MinCapacity: aws.Int32(int32(release.Resources.MinScale)), MaxCapacity: aws.Int32(int32(release.Resources.MaxScale)),
	})
	if err != nil {
		return err
	}
	return t.putPolicy(ctx, release.Ref, release.Jobs())
}

// labelJobs is a label of the container of an Express service that scales. Its value is the
// number of runs that a replica is meant for. Await knows only the name of the release, and the
// task definition is the one that the service has at that time.
const labelJobs = pod.LabelPrefix + "jobs"

// scaleExpress makes the number of tasks of an Express service follow the number of runs. ECS
// registers the scalable target of such a service with tags, which AWS refuses for a target that
// exists. So scaleExpress only adds a policy, and the release is Progressing until ECS has
// registered the target.
//
// The service has a policy of its own besides, because ECS knows CPU, memory and requests only.
// Application Auto Scaling starts tasks if one policy asks for it, and ends tasks if all do:
// agents that wait for models are far below the target of CPU, so that policy keeps no task.
func (t *Target) scaleExpress(ctx context.Context, ref compute.Ref) (compute.Status, error) {
	service, err := t.describe(ctx, ref)
	if err != nil {
		return compute.Status{}, err
	}
	if service == nil {
		return absent, nil
	}
	described, err := t.ecs.DescribeTaskDefinition(ctx, &ecs.DescribeTaskDefinitionInput{TaskDefinition: service.TaskDefinition})
	if err != nil {
		return compute.Status{}, err
	}
	label := labelOf(described.TaskDefinition, labelJobs)
	if label == "" {
		return healthy, nil // the number of its replicas does not change
	}
	jobs, err := strconv.Atoi(label)
	if err != nil {
		return compute.Status{}, err
	}
	err = t.putPolicy(ctx, ref, jobs)
	if _, missing := errors.AsType[*scalingtypes.ObjectNotFoundException](err); missing {
		return compute.Status{State: compute.Progressing, Message: "its replicas run, and it waits for its scalable target"}, nil
	}
	if err != nil {
		return compute.Status{}, err
	}
	return healthy, nil
}

// putPolicy aims at a share of the runs that each replica is meant for.
func (t *Target) putPolicy(ctx context.Context, ref compute.Ref, jobs int) error {
	_, err := t.scaling.PutScalingPolicy(ctx, &applicationautoscaling.PutScalingPolicyInput{
		ServiceNamespace: scalingNamespace, ScalableDimension: scalingDimension, ResourceId: aws.String(t.names.scalable(ref)),
		PolicyName: t.policy(ref), PolicyType: scalingtypes.PolicyTypeTargetTrackingScaling,
		TargetTrackingScalingPolicyConfiguration: &scalingtypes.TargetTrackingScalingPolicyConfiguration{
			TargetValue:                   aws.Float64(share * float64(jobs)),
			CustomizedMetricSpecification: &scalingtypes.CustomizedMetricSpecification{Metrics: t.runsPerTask(ref)},
		},
	})
	return err
}

// policy is the name of a release's scaling policy. The names of an Express service's own policies
// are not known, so ours has an ending.
func (t *Target) policy(ref compute.Ref) *string {
	if t.cfg.Compute == Express {
		return aws.String(t.names.of(ref) + "-runs")
	}
	return aws.String(t.names.of(ref))
}

// runsPerTask is the number of runs for each task. A minute without runs counts as 0. CloudWatch
// has one sample of a service's CPU utilization for each task that runs, which costs nothing. A
// minute without tasks, or whose samples have not come yet, is left out.
func (t *Target) runsPerTask(ref compute.Ref) []scalingtypes.TargetTrackingMetricDataQuery {
	measure := func(id, stat, namespace, name string, dimensions ...[2]string) scalingtypes.TargetTrackingMetricDataQuery {
		measured := &scalingtypes.TargetTrackingMetric{Namespace: aws.String(namespace), MetricName: aws.String(name)}
		for _, d := range dimensions {
			measured.Dimensions = append(measured.Dimensions, scalingtypes.TargetTrackingMetricDimension{Name: aws.String(d[0]), Value: aws.String(d[1])})
		}
		return scalingtypes.TargetTrackingMetricDataQuery{
			Id: aws.String(id), ReturnData: aws.Bool(false), MetricStat: &scalingtypes.TargetTrackingMetricStat{Stat: aws.String(stat), Metric: measured},
		}
	}
	return []scalingtypes.TargetTrackingMetricDataQuery{
		measure("busy", "Sum", metric.Namespace(t.names.prefix), metric.Busy, [2]string{metric.Revision, ref.Revision}),
		measure("tasks", "SampleCount", "AWS/ECS", "CPUUtilization", [2]string{"ClusterName", t.names.cluster}, [2]string{"ServiceName", t.names.of(ref)}),
		{
			Id: aws.String("load"), Expression: aws.String("FILL(busy, 0) / 60 / tasks"), Label: aws.String("Runs for each replica"), ReturnData: aws.Bool(true),
		},
	}
}

// removeScaling deletes what scale made, with the alarms that belong to it. The scalable target of
// an Express service belongs to ECS, which deletes it with the service.
func (t *Target) removeScaling(ctx context.Context, ref compute.Ref) error {
	var err error
	if t.cfg.Compute == Express {
		_, err = t.scaling.DeleteScalingPolicy(ctx, &applicationautoscaling.DeleteScalingPolicyInput{
			ServiceNamespace: scalingNamespace, ScalableDimension: scalingDimension, ResourceId: aws.String(t.names.scalable(ref)), PolicyName: t.policy(ref),
		})
	} else {
		_, err = t.scaling.DeregisterScalableTarget(ctx, &applicationautoscaling.DeregisterScalableTargetInput{
			ServiceNamespace: scalingNamespace, ScalableDimension: scalingDimension, ResourceId: aws.String(t.names.scalable(ref)),
		})
	}
	if _, missing := errors.AsType[*scalingtypes.ObjectNotFoundException](err); missing {
		return nil
	}
	if invalid, ok := errors.AsType[*scalingtypes.ValidationException](err); ok && strings.Contains(invalid.ErrorMessage(), "No scal") {
		return nil // "No scalable target found", "No scaling policy found"
	}
	return err
}
