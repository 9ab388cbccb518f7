package agents

import "github.com/slipway-run/slipway/internal/stack"

// Names of the variables.
const (
	variableHost               = "SLIPWAY_AGENT_HOST"
	variableHostToken          = "SLIPWAY_AGENT_HOST_TOKEN"
	variableCompute            = "SLIPWAY_COMPUTE"
	variableNamePrefix         = "SLIPWAY_NAME_PREFIX"
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
	variableProject            = "SLIPWAY_CODEBUILD_PROJECT"
	variableBuildLogGroup      = "SLIPWAY_CODEBUILD_LOG_GROUP"
	variableRepository         = "SLIPWAY_ECR_REPOSITORY"

	computeExpress = "express"
)

// hasPlace tells that agents can run somewhere. A stack without a network for them serves everything else, and rollouts end in words.
func hasPlace(env stack.Environment) bool {
	return env.Get(variableHost) != "" || env.Get(variableSubnets) != ""
}

// NeedTarget is the need of functions that invoke agents.
func NeedTarget(env stack.Environment) []string {
	switch {
	case env.Get(variableHost) != "" || !hasPlace(env):
		return nil
	case env.Get(variableCompute) == computeExpress:
		return []string{variableNamePrefix, variableCluster, variableInfrastructureRole}
	default:
		return []string{variableALB}
	}
}

// NeedRollout is the need of functions that build and release agents.
func NeedRollout(env stack.Environment) []string {
	if env.Get(variableHost) != "" {
		return nil
	}
	names := []string{variableNamePrefix, variableProject, variableRepository}
	if !hasPlace(env) {
		return names
	}
	names = append(names, variableCluster, variableSecurityGroups, variableExecutionRole, variableLogGroup)
	if env.Get(variableCompute) != computeExpress {
		names = append(names, variableVPC, variableListener)
	}
	return append(names, NeedTarget(env)...)
}
