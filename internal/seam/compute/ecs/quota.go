package ecs

import (
	"errors"

	"github.com/aws/smithy-go"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

// quotas are the errors by which AWS services say that the account, or the load balancer, has
// no room.
var quotas = map[string]string{
	"TooManyTargetGroups":                      "target groups of the region",
	"TooManyUniqueTargetGroupsPerLoadBalancer": "target groups of a load balancer",
	"TooManyRules":                             "rules of a load balancer",
	"TooManyTargets":                           "targets of a load balancer",
	"TooManyRegistrationsForTargetId":          "target groups of a target",
	"TooManyActions":                           "actions of a rule",
	"ServiceQuotaExceededException":            "services of the cluster",
	"LimitExceededException":                   "secrets, scalable targets or task definitions of the region",
}

// noCapacity returns a *compute.NoCapacity in the place of an error about a quota, and any
// other error unchanged.
func noCapacity(err error) error {
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return err
	}
	if quota := quotas[api.ErrorCode()]; quota != "" {
		return &compute.NoCapacity{Quota: quota + " (" + api.ErrorCode() + ")"}
	}
	return err
}
