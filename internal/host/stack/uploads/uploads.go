// Package uploads is where clients upload sources. It is apart from package stack, so that only
// those functions link it that grant uploads, or erase them.
package uploads

import (
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/seam/upload"
	"github.com/slipway-run/slipway/internal/seam/upload/remote"
	"github.com/slipway-run/slipway/internal/seam/upload/s3"
)

// Names of the variables.
const (
	variableHost      = "SLIPWAY_AGENT_HOST"
	variableHostToken = "SLIPWAY_AGENT_HOST_TOKEN"
	variableBucket    = "SLIPWAY_UPLOAD_BUCKET"
)

// Of returns the uploads of a stack: in its bucket, or on the machine that builds them.
func Of(s *stack.Stack) upload.Store {
	if host := s.Get(variableHost); host != "" {
		return remote.New(host, s.Get(variableHostToken), nil)
	}
	return Bucket(s)
}

// Bucket has the uploads that CodeBuild builds.
func Bucket(s *stack.Stack) *s3.Store { return s3.New(s.AWS, s.Get(variableBucket)) }

// Need is the need of functions that use it.
func Need(env stack.Environment) []string {
	if env.Get(variableHost) != "" {
		return nil
	}
	return []string{variableBucket}
}
