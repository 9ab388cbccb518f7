package ecs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

// tagsPage is the number of resources whose tags AWS describes at a time.
const tagsPage = 20

// Sweep deletes the target groups of removed releases whose services have drained. A timer should
// call it: it costs one request, and another for each twenty releases.
func (t *Target) Sweep(ctx context.Context) error {
	if t.cfg.Compute == Express {
		return nil
	}
	if t.names.prefix == "" {
		return errors.New("sweep target groups: there is no name prefix")
	}
	groups, err := t.targetGroups(ctx)
	if err != nil {
		return fmt.Errorf("sweep target groups: %w", err)
	}
	for page := range slices.Chunk(groups, tagsPage) {
		if err := t.sweep(ctx, page); err != nil {
			return fmt.Errorf("sweep target groups: %w", err)
		}
	}
	return nil
}

// targetGroups returns the ARNs of the stack's target groups.
func (t *Target) targetGroups(ctx context.Context) ([]string, error) {
	var arns []string
	for pages := elb.NewDescribeTargetGroupsPaginator(t.elb, nil); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, group := range page.TargetGroups {
			if strings.HasPrefix(aws.ToString(group.TargetGroupName), t.names.prefix+"-") {
				arns = append(arns, aws.ToString(group.TargetGroupArn))
			}
		}
	}
	return arns, nil
}

func (t *Target) sweep(ctx context.Context, arns []string) error {
	found, err := t.elb.DescribeTags(ctx, &elb.DescribeTagsInput{ResourceArns: arns})
	if _, missing := errors.AsType[*types.TargetGroupNotFoundException](err); missing {
		return nil // another sweep deletes it
	}
	if err != nil {
		return err
	}
	for _, described := range found.TagDescriptions {
		tags := map[string]string{}
		for _, tag := range described.Tags {
			tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
		}
		if tags[tagStack] != t.names.prefix || tags[tagRemoved] == "" || tags[tagRevision] == "" {
			continue
		}
		service, err := t.describe(ctx, compute.Ref{Revision: tags[tagRevision]})
		if err != nil {
			return err
		}
		if service != nil {
			continue // the service drains, or the release is being applied again
		}
		_, err = t.elb.DeleteTargetGroup(ctx, &elb.DeleteTargetGroupInput{TargetGroupArn: described.ResourceArn})
		if _, used := errors.AsType[*types.ResourceInUseException](err); err != nil && !used {
			return err
		}
	}
	return nil
}
