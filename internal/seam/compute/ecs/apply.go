package ecs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

// Status of a service, and of its deployment that counts.
const (
	active   = "ACTIVE"
	draining = "DRAINING"
	primary  = "PRIMARY"
)

// errDraining is the error of an Apply that follows its Remove too soon.
var errDraining = errors.New("the service of the same name is still draining")

// Apply makes the resources of the release, the service last.
func (t *Target) Apply(ctx context.Context, release compute.Release) error {
	if err := t.apply(ctx, release); err != nil {
		return fmt.Errorf("apply release %s: %w", release.Revision, noCapacity(err))
	}
	return nil
}

func (t *Target) apply(ctx context.Context, release compute.Release) error {
	if err := t.names.check(release.Ref); err != nil {
		return err
	}
	if release.Artifact.Image == "" {
		return errors.New("there is no image to run")
	}
	release.Resources = release.Resources.OrDefaults()
	service, err := t.describe(ctx, release.Ref)
	if err != nil {
		return err
	}
	switch {
	case service != nil && aws.ToString(service.Status) == draining:
		return errDraining
	case service != nil:
		return errors.Join(t.retry(ctx, release, service), t.scale(ctx, release))
	}
	definition, err := t.define(ctx, release, "")
	if err != nil {
		return err
	}
	if t.cfg.Compute == Express {
		err = t.createExpress(ctx, release, definition)
	} else {
		err = t.create(ctx, release, definition)
	}
	// Another caller that applies the same revision was quicker.
	if refused, ok := errors.AsType[*types.InvalidParameterException](err); err != nil && (!ok || !strings.Contains(refused.ErrorMessage(), "not idempotent")) {
		return err
	}
	return t.scale(ctx, release)
}

// describe returns the release's service; nil if the service does not exist, or does not exist
// any more.
func (t *Target) describe(ctx context.Context, ref compute.Ref) (*types.Service, error) {
	described, err := t.ecs.DescribeServices(ctx, &ecs.DescribeServicesInput{
		Cluster: aws.String(t.cfg.Cluster), Services: []string{t.names.of(ref)}, Include: []types.ServiceField{types.ServiceFieldTags},
	})
	if err != nil {
		return nil, err
	}
	for i := range described.Services {
		if status := aws.ToString(described.Services[i].Status); status == active || status == draining {
			return &described.Services[i], nil
		}
	}
	return nil, nil
}

// create makes the service, and before it the way in that it needs.
func (t *Target) create(ctx context.Context, release compute.Release, definition string) error {
	group, err := t.route(ctx, release.Ref)
	if err != nil {
		return err
	}
	_, err = t.ecs.CreateService(ctx, &ecs.CreateServiceInput{
		ServiceName:    aws.String(t.names.of(release.Ref)),
		Cluster:        aws.String(t.cfg.Cluster),
		TaskDefinition: aws.String(definition),
		DesiredCount:   aws.Int32(int32(release.Resources.MinScale)),
		LaunchType:     types.LaunchTypeFargate,
		// There is nothing to roll back to: the previous release is a service of its own.
		DeploymentConfiguration:       replacing(false),
		HealthCheckGracePeriodSeconds: aws.Int32(int32(cmp.Or(release.ReadyLimit, startLimit).Seconds())),
		LoadBalancers: []types.LoadBalancer{{
			TargetGroupArn: aws.String(group), ContainerName: aws.String(container), ContainerPort: aws.Int32(port),
		}},
		NetworkConfiguration: &types.NetworkConfiguration{AwsvpcConfiguration: &types.AwsVpcConfiguration{
			Subnets: t.cfg.Subnets, SecurityGroups: t.cfg.SecurityGroups, AssignPublicIp: t.publicIP(),
		}},
		PropagateTags: types.PropagateTagsService,
		Tags:          t.serviceTags(release),
	})
	return err
}

// replacing is how a service replaces its tasks: it starts as many new tasks, and ends an old
// task only when the new tasks are healthy. If they are not, the service goes back to the old
// tasks, if rollback is set.
func replacing(rollback bool) *types.DeploymentConfiguration {
	return &types.DeploymentConfiguration{
		DeploymentCircuitBreaker: &types.DeploymentCircuitBreaker{Enable: true, Rollback: rollback},
		MinimumHealthyPercent:    aws.Int32(100),
		MaximumPercent:           aws.Int32(200),
	}
}

func (t *Target) publicIP() types.AssignPublicIp {
	if t.cfg.PublicIP {
		return types.AssignPublicIpEnabled
	}
	return types.AssignPublicIpDisabled
}

func (t *Target) tags(ref compute.Ref) []types.Tag {
	return tagsAs(t.names.tags(ref), func(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} })
}

// serviceTags are the tags of a release's service. They tell the processes that wait for the
// release how long to wait.
func (t *Target) serviceTags(release compute.Release) []types.Tag {
	tags := t.tags(release.Ref)
	if release.ReadyLimit > 0 {
		tags = append(tags, types.Tag{Key: aws.String(tagReadyLimit), Value: aws.String(strconv.Itoa(int(release.ReadyLimit / time.Second)))})
	}
	return tags
}

// readyLimitOf is how long the release of a service may take to become healthy.
func readyLimitOf(service *types.Service) time.Duration {
	for _, tag := range service.Tags {
		if aws.ToString(tag.Key) == tagReadyLimit {
			if seconds, err := strconv.Atoi(aws.ToString(tag.Value)); err == nil {
				return time.Duration(seconds) * time.Second
			}
		}
	}
	return readyLimit
}

// retry starts the tasks of a failed release again.
func (t *Target) retry(ctx context.Context, release compute.Release, service *types.Service) error {
	status, err := t.look(ctx, release.Ref)
	if err != nil || status.State != compute.Failed {
		return err
	}
	if t.cfg.Compute == Express {
		return t.moveTo(ctx, release.Ref, aws.ToString(service.TaskDefinition))
	}
	_, err = t.ecs.UpdateService(ctx, &ecs.UpdateServiceInput{
		Service: service.ServiceName, Cluster: aws.String(t.cfg.Cluster), ForceNewDeployment: true,
		DesiredCount: aws.Int32(int32(release.Resources.MinScale)),
	})
	return err
}
