package ecs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	secrettypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

// Remove deletes all resources of the release, except a target group that its draining service
// still needs. Sweep deletes that target group later.
func (t *Target) Remove(ctx context.Context, ref compute.Ref) error {
	type remover = func(context.Context, compute.Ref) error
	steps := []remover{t.removeScaling, t.removeService, t.removeTasks, t.removeSecret}
	if t.cfg.Compute != Express { // Express has made its rule and its target group itself
		steps = slices.Concat([]remover{t.removeRule}, steps, []remover{t.removeTargetGroup})
	}
	err := t.names.check(ref)
	for _, step := range steps {
		if err == nil {
			err = step(ctx, ref)
		}
	}
	t.addresses.Drop(ref.Revision)
	if err != nil {
		return fmt.Errorf("remove release %s: %w", ref.Revision, err)
	}
	return nil
}

// removeRule lets no more callers in.
func (t *Target) removeRule(ctx context.Context, ref compute.Ref) error {
	rules, err := t.rules(ctx)
	if err != nil {
		return err
	}
	for _, rule := range slices.DeleteFunc(rules, func(r elbtypes.Rule) bool { return !isRuleOf(ref)(r) }) {
		_, err := t.elb.DeleteRule(ctx, &elb.DeleteRuleInput{RuleArn: rule.RuleArn})
		if _, missing := errors.AsType[*elbtypes.RuleNotFoundException](err); err != nil && !missing {
			return err
		}
	}
	return nil
}

// removeService deletes the service. Its tasks drain.
func (t *Target) removeService(ctx context.Context, ref compute.Ref) error {
	if t.cfg.Compute == Express {
		service, err := t.describeExpress(ctx, ref)
		if err != nil || service == nil || (service.Status != nil && service.Status.StatusCode != types.ExpressGatewayServiceStatusCodeActive) {
			return err
		}
		_, err = t.ecs.DeleteExpressGatewayService(ctx, &ecs.DeleteExpressGatewayServiceInput{ServiceArn: aws.String(t.names.service(ref))})
		return ignoreMissing(err)
	}
	service, err := t.describe(ctx, ref)
	if err != nil || service == nil || aws.ToString(service.Status) == draining {
		return err
	}
	// Force means without scaling to zero before. Scaling to zero would end in the same way.
	_, err = t.ecs.DeleteService(ctx, &ecs.DeleteServiceInput{Service: service.ServiceName, Cluster: aws.String(t.cfg.Cluster), Force: aws.Bool(true)})
	return ignoreMissing(err)
}

func ignoreMissing(err error) error {
	if isMissing(err) {
		return nil
	}
	return err
}

// definitionsPage is how many task definitions AWS deletes at a time.
const definitionsPage = 10

// removeTasks takes back the task definitions of the release: one of each restart that Restart
// has not taken back, and several of its first start if it was applied twice at the same time.
// ECS erases inactive task definitions when no task needs them any more.
func (t *Target) removeTasks(ctx context.Context, ref compute.Ref) error {
	inUse, err := t.definitions(ctx, ref, types.TaskDefinitionStatusActive)
	if err != nil {
		return err
	}
	inactive, err := t.definitions(ctx, ref, types.TaskDefinitionStatusInactive)
	if err != nil {
		return err
	}
	for _, definition := range inUse {
		if err := t.deregister(ctx, definition); err != nil {
			return err
		}
	}
	for page := range slices.Chunk(append(inactive, inUse...), definitionsPage) {
		if _, err := t.ecs.DeleteTaskDefinitions(ctx, &ecs.DeleteTaskDefinitionsInput{TaskDefinitions: page}); err != nil {
			return err
		}
	}
	return nil
}

// definitions returns the ARNs of the release's task definitions with the given status.
func (t *Target) definitions(ctx context.Context, ref compute.Ref, status types.TaskDefinitionStatus) ([]string, error) {
	var arns []string
	input := &ecs.ListTaskDefinitionsInput{FamilyPrefix: aws.String(t.names.of(ref)), Status: status}
	for pages := ecs.NewListTaskDefinitionsPaginator(t.ecs, input); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		arns = append(arns, page.TaskDefinitionArns...)
	}
	return arns, nil
}

func (t *Target) deregister(ctx context.Context, definition string) error {
	_, err := t.ecs.DeregisterTaskDefinition(ctx, &ecs.DeregisterTaskDefinitionInput{TaskDefinition: aws.String(definition)})
	return err
}

// removeSecret erases the secret at once. Draining tasks got its values when they started.
func (t *Target) removeSecret(ctx context.Context, ref compute.Ref) error {
	_, err := t.secrets.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{
		SecretId: aws.String(t.names.of(ref)), ForceDeleteWithoutRecovery: aws.Bool(true),
	})
	if _, missing := errors.AsType[*secrettypes.ResourceNotFoundException](err); missing {
		return nil
	}
	return err
}

// removeTargetGroup marks the release's target group, then deletes the marked target groups
// that no service needs any more.
func (t *Target) removeTargetGroup(ctx context.Context, ref compute.Ref) error {
	group, err := t.targetGroup(ctx, ref)
	if err != nil {
		return err
	}
	if group != "" {
		_, err := t.elb.AddTags(ctx, &elb.AddTagsInput{ResourceArns: []string{group}, Tags: t.elbTags([]tag{{tagRemoved, "true"}})})
		if err != nil {
			return err
		}
	}
	return t.Sweep(ctx)
}
