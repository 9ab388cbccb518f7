// Package images is the registry that clients push images to. It is apart from package stack,
// so that only functions that accept pushes, or remove images, link it.
package images

import (
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/seam/registry"
	"github.com/slipway-run/slipway/internal/seam/registry/ecr"
)

// Names of the variables.
const (
	variableRepository = "SLIPWAY_ECR_REPOSITORY"
	variableRole       = "SLIPWAY_PUSH_ROLE"
)

// Of returns the registry of a stack. It is nil if agents are processes of a machine, because
// such a machine runs no images.
func Of(s *stack.Stack) (registry.Registry, error) {
	if s.IsHosted() {
		return nil, nil
	}
	return ecr.New(ecr.Config{AWS: s.AWS, Prefix: s.Get(variableRepository), Role: s.Get(variableRole), Now: clock.System})
}

// Need names the needs of functions that use the registry.
var Need = stack.NeedOnAWS(variableRepository, variableRole)
