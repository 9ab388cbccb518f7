package ecs

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

const (
	// RevisionHeader names the revision that a request is for.
	RevisionHeader = "X-Slipway-Revision"
	// maxPriority is the largest priority that a rule of a listener may have.
	maxPriority = 50000
	// contention is how often a new priority is chosen because another process took the chosen
	// one meanwhile.
	contention = 5
)

// route makes the release's target group and the listener rule that forwards to it, and
// returns the ARN of the target group.
func (t *Target) route(ctx context.Context, ref compute.Ref) (string, error) {
	group, err := t.targetGroup(ctx, ref)
	if err != nil {
		return "", err
	}
	if group == "" {
		group, err = t.createTargetGroup(ctx, ref)
	} else { // the mark of a Remove goes
		_, err = t.elb.RemoveTags(ctx, &elb.RemoveTagsInput{ResourceArns: []string{group}, TagKeys: []string{tagRemoved}})
	}
	if err != nil {
		return "", err
	}
	_, err = t.elb.ModifyTargetGroupAttributes(ctx, &elb.ModifyTargetGroupAttributesInput{
		TargetGroupArn: aws.String(group),
		Attributes: []types.TargetGroupAttribute{{
			Key: aws.String("deregistration_delay.timeout_seconds"), Value: aws.String(strconv.Itoa(int(compute.DrainLimit.Seconds()))),
		}},
	})
	if err != nil {
		return "", err
	}
	return group, t.createRule(ctx, ref, group)
}

// targetGroup returns the ARN of the release's target group, "" if there is no target group.
func (t *Target) targetGroup(ctx context.Context, ref compute.Ref) (string, error) {
	described, err := t.elb.DescribeTargetGroups(ctx, &elb.DescribeTargetGroupsInput{Names: []string{t.names.targetGroup(ref)}})
	if _, missing := errors.AsType[*types.TargetGroupNotFoundException](err); missing || (err == nil && len(described.TargetGroups) == 0) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return aws.ToString(described.TargetGroups[0].TargetGroupArn), nil
}

func (t *Target) createTargetGroup(ctx context.Context, ref compute.Ref) (string, error) {
	created, err := t.elb.CreateTargetGroup(ctx, &elb.CreateTargetGroupInput{
		Name: aws.String(t.names.targetGroup(ref)), VpcId: aws.String(t.cfg.VPC),
		Protocol: types.ProtocolEnumHttp, Port: aws.Int32(port), TargetType: types.TargetTypeEnumIp,
		HealthCheckProtocol: types.ProtocolEnumHttp, HealthCheckPath: aws.String("/ping"), Matcher: &types.Matcher{HttpCode: aws.String("200")},
		HealthCheckIntervalSeconds: aws.Int32(5), HealthCheckTimeoutSeconds: aws.Int32(4), HealthyThresholdCount: aws.Int32(2), UnhealthyThresholdCount: aws.Int32(6),
		Tags: t.elbTags(t.names.tags(ref)),
	})
	if err != nil {
		return "", err
	}
	return aws.ToString(created.TargetGroups[0].TargetGroupArn), nil
}

func (t *Target) elbTags(tags []tag) []types.Tag {
	return tagsAs(tags, func(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} })
}

// createRule makes the release's rule, unless the rule exists. The priority must be one that
// no other rule of the listener has.
func (t *Target) createRule(ctx context.Context, ref compute.Ref, group string) error {
	for range contention {
		rules, err := t.rules(ctx)
		if err != nil || slices.ContainsFunc(rules, isRuleOf(ref)) {
			return err
		}
		_, err = t.elb.CreateRule(ctx, &elb.CreateRuleInput{
			ListenerArn: aws.String(t.cfg.ALBListener), Priority: aws.Int32(freePriority(rules, ref)),
			Conditions: []types.RuleCondition{{
				Field:            aws.String("http-header"),
				HttpHeaderConfig: &types.HttpHeaderConditionConfig{HttpHeaderName: aws.String(RevisionHeader), Values: []string{ref.Revision}},
			}},
			Actions: []types.Action{{Type: types.ActionTypeEnumForward, TargetGroupArn: aws.String(group)}},
			Tags:    t.elbTags(t.names.tags(ref)),
		})
		if _, taken := errors.AsType[*types.PriorityInUseException](err); !taken {
			return err
		}
	}
	return errors.New("other releases took every priority that was chosen for the listener rule")
}

// rules returns all rules of the listener.
func (t *Target) rules(ctx context.Context) ([]types.Rule, error) {
	var rules []types.Rule
	input := &elb.DescribeRulesInput{ListenerArn: aws.String(t.cfg.ALBListener)}
	for pages := elb.NewDescribeRulesPaginator(t.elb, input); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		rules = append(rules, page.Rules...)
	}
	return rules, nil
}

func isRuleOf(ref compute.Ref) func(types.Rule) bool {
	return func(rule types.Rule) bool {
		return slices.ContainsFunc(rule.Conditions, func(c types.RuleCondition) bool {
			return c.HttpHeaderConfig != nil && strings.EqualFold(aws.ToString(c.HttpHeaderConfig.HttpHeaderName), RevisionHeader) &&
				slices.Contains(c.HttpHeaderConfig.Values, ref.Revision)
		})
	}
}

// freePriority begins at a number that depends on the revision, so two processes that choose
// at the same time rarely choose the same priority. The order of the rules does not matter,
// because at most one rule matches a request.
func freePriority(rules []types.Rule, ref compute.Ref) int32 {
	taken := map[string]bool{}
	for _, rule := range rules {
		taken[aws.ToString(rule.Priority)] = true
	}
	hash := fnv.New32a()
	hash.Write([]byte(ref.Revision))
	priority := int32(hash.Sum32() % maxPriority)
	for taken[strconv.Itoa(int(priority)+1)] {
		priority = (priority + 1) % maxPriority
	}
	return priority + 1
}
