// Package images is the registry that clients push images to. It is apart from package stack, so
// that only those functions link it that let clients push, or remove images.
package images

import (
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/seam/registry"
	"github.com/slipway-run/slipway/internal/seam/registry/ecr"
)

// Names of the variables.
const (
	variableHost       = "SLIPWAY_AGENT_HOST"
	variableRepository = "SLIPWAY_ECR_REPOSITORY"
	variableRole       = "SLIPWAY_PUSH_ROLE"
)

// Of returns the registry of a stack, nil where agents are processes of a machine, which runs no
// images.
func Of(s *stack.Stack) (registry.Registry, error) {
	if s.Get(variableHost) != "" {
		return nil, nil
	}
	return ecr.New(ecr.Config{AWS: s.AWS, Prefix: s.Get(variableRepository), Role: s.Get(variableRole), Now: clock.System})
}

// Need is the need of functions that use it.
func Need(env stack.Environment) []string {
	if env.Get(variableHost) != "" {
		return nil
	}
	return []string{variableRepository, variableRole}
}
