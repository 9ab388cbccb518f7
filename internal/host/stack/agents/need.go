package agents

import (
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs"
)

// VariableNamePrefix names the prefix of all names that are made for agents.
const VariableNamePrefix = "SLIPWAY_NAME_PREFIX"

const (
	variableCompute            = "SLIPWAY_COMPUTE"
	variableCluster            = "SLIPWAY_ECS_CLUSTER"
	variableSubnets            = "SLIPWAY_ECS_SUBNETS"
	variableSecurityGroups     = "SLIPWAY_ECS_SECURITY_GROUPS"
	variableExecutionRole      = "SLIPWAY_ECS_EXECUTION_ROLE"
	variableTaskRole           = "SLIPWAY_ECS_TASK_ROLE"
	variableInfrastructureRole = "SLIPWAY_ECS_INFRASTRUCTURE_ROLE"
	variableLogGroup           = "SLIPWAY_ECS_LOG_GROUP"
	variableArchitecture       = "SLIPWAY_ECS_ARCHITECTURE"
	variablePublicIP           = "SLIPWAY_ECS_PUBLIC_IP"
	variableVPC                = "SLIPWAY_VPC"
	variableListener           = "SLIPWAY_ALB_LISTENER"
	variableALB                = "SLIPWAY_ALB_URL"
)

// hasOwnTarget reports whether the stack has a target of its own for agents. A stack without a
// network for agents serves everything else, and rollouts end with a message.
func hasOwnTarget(env stack.Environment) bool {
	return env.IsHosted() || env.Get(variableSubnets) != ""
}

// NeedTarget names the needs of functions that invoke agents.
func NeedTarget(env stack.Environment) []string {
	switch {
	case env.IsHosted() || !hasOwnTarget(env):
		return nil
	case env.Get(variableCompute) == ecs.Express:
		return []string{VariableNamePrefix, variableCluster, variableInfrastructureRole}
	default:
		return []string{variableALB}
	}
}

// NeedOwnTarget names the needs of functions that release agents.
func NeedOwnTarget(env stack.Environment) []string {
	if env.IsHosted() || !hasOwnTarget(env) {
		return nil
	}
	names := []string{variableCluster, variableSecurityGroups, variableExecutionRole, variableLogGroup}
	if env.Get(variableCompute) != ecs.Express {
		names = append(names, variableVPC, variableListener)
	}
	return append(names, NeedTarget(env)...)
}
