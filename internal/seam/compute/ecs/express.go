package ecs

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

// expressCPU is the load of the replicas, in percent, at which an Express service gets more
// replicas, beside the number of its runs.
const expressCPU = 60

func (t *Target) createExpress(ctx context.Context, release compute.Release, definition string) error {
	input := &ecs.CreateExpressGatewayServiceInput{
		ServiceName: aws.String(t.names.of(release.Ref)), Cluster: aws.String(t.cfg.Cluster),
		InfrastructureRoleArn: aws.String(t.cfg.InfrastructureRole),
		TaskDefinitionArn:     aws.String(definition),
		HealthCheckPath:       aws.String("/ping"),
		ScalingTarget: &types.ExpressGatewayScalingTarget{
			AutoScalingMetric: types.ExpressGatewayServiceScalingMetricAverageCPUUtilization, AutoScalingTargetValue: aws.Int32(expressCPU),
			MinTaskCount: aws.Int32(int32(release.Resources.MinScale)), MaxTaskCount: aws.Int32(int32(release.Resources.MaxScale)),
		},
		Tags: t.serviceTags(release),
	}
	if len(t.cfg.Subnets) > 0 {
		input.NetworkConfiguration = &types.ExpressGatewayServiceNetworkConfiguration{Subnets: t.cfg.Subnets, SecurityGroups: t.cfg.SecurityGroups}
	}
	_, err := t.ecs.CreateExpressGatewayService(ctx, input)
	return err
}

// newestExpress returns the newest deployment of an Express service; nil if there is no
// deployment yet. The deployments of an Express service are canaries, and the description of the
// service does not hold their state.
func (t *Target) newestExpress(ctx context.Context, service *types.Service) (*types.ServiceDeploymentBrief, error) {
	deployed, err := t.expressDeployments(ctx, service, 1)
	if err != nil || len(deployed) == 0 {
		return nil, err
	}
	return &deployed[0], nil
}

// expressDeployments returns at most limit deployments of an Express service, the newest
// first.
func (t *Target) expressDeployments(ctx context.Context, service *types.Service, limit int32) ([]types.ServiceDeploymentBrief, error) {
	described, err := t.ecs.ListServiceDeployments(ctx, &ecs.ListServiceDeploymentsInput{
		Service: service.ServiceArn, Cluster: aws.String(t.cfg.Cluster), MaxResults: aws.Int32(limit),
	})
	if err != nil {
		return nil, err
	}
	return described.ServiceDeployments, nil
}

// expressHistory is the number of deployments of an Express service among which expressReady
// looks for a successful one.
const expressHistory = 100

// expressReady reports whether the tasks of an Express service serve. These are the tasks of
// its newest deployment. While that deployment only replaces tasks, and after it was taken
// back, they are the tasks of an earlier deployment that succeeded.
func (t *Target) expressReady(ctx context.Context, service *types.Service) (bool, error) {
	deployed, err := t.expressDeployments(ctx, service, expressHistory)
	if err != nil || len(deployed) == 0 {
		return false, err
	}
	switch deployed[0].Status {
	case types.ServiceDeploymentStatusSuccessful:
		return true, nil
	case types.ServiceDeploymentStatusStopped, types.ServiceDeploymentStatusRollbackFailed:
		return false, nil
	default:
		return slices.ContainsFunc(deployed[1:], func(d types.ServiceDeploymentBrief) bool { return d.Status == types.ServiceDeploymentStatusSuccessful }), nil
	}
}

// describeExpress returns the Express service of a release; nil if there is no service.
func (t *Target) describeExpress(ctx context.Context, ref compute.Ref) (*types.ECSExpressGatewayService, error) {
	described, err := t.ecs.DescribeExpressGatewayService(ctx, &ecs.DescribeExpressGatewayServiceInput{ServiceArn: aws.String(t.names.service(ref))})
	if isMissing(err) || (err == nil && described.Service == nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return described.Service, nil
}

// isMissing reports whether an error says that there is no such service. ECS has several
// errors for it.
func isMissing(err error) bool {
	_, resource := errors.AsType[*types.ResourceNotFoundException](err)
	_, service := errors.AsType[*types.ServiceNotFoundException](err)
	_, inactive := errors.AsType[*types.ServiceNotActiveException](err)
	return resource || service || inactive
}

// expressURL returns the address of a release. If ECS does not answer, the address that is kept is
// used on: ECS answers only so many calls of an account.
func (t *Target) expressURL(ctx context.Context, ref compute.Ref) (string, error) {
	kept, known := t.addresses.Get(ref.Revision)
	if known && t.cfg.Now().Sub(kept.read) < addressKept {
		return kept.url, nil
	}
	service, err := t.describeExpress(ctx, ref)
	if err != nil && known {
		return t.keep(ref, kept.url), nil
	}
	if err != nil {
		return "", err
	}
	switch {
	case service == nil:
		return "", &compute.UnavailableError{Ref: ref, Status: absent}
	case service.Status != nil && service.Status.StatusCode != types.ExpressGatewayServiceStatusCodeActive:
		return "", &compute.UnavailableError{Ref: ref, Status: stopping}
	}
	for _, configuration := range service.ActiveConfigurations {
		for _, path := range configuration.IngressPaths {
			if endpoint := aws.ToString(path.Endpoint); endpoint != "" {
				return t.keep(ref, endpoint), nil
			}
		}
	}
	return "", &compute.UnavailableError{Ref: ref, Status: compute.Status{State: compute.Progressing, Message: "it has no address yet"}}
}

// keep remembers a release's endpoint, which AWS gives with or without a scheme, as a URL.
func (t *Target) keep(ref compute.Ref, endpoint string) string {
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}
	endpoint = strings.TrimSuffix(endpoint, "/")
	t.addresses.Put(ref.Revision, address{endpoint, t.cfg.Now()}, 1)
	return endpoint
}
