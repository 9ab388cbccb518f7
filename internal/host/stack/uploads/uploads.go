// Package uploads is the storage for uploaded sources. It is apart from package stack, so that
// only functions that grant uploads, or erase them, link it.
package uploads

import (
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/seam/upload"
	"github.com/slipway-run/slipway/internal/seam/upload/remote"
	"github.com/slipway-run/slipway/internal/seam/upload/s3"
)

// variableBucket names the variable.
const variableBucket = "SLIPWAY_UPLOAD_BUCKET"

// Of returns the uploads of a stack: in its bucket, or on the machine that builds them.
func Of(s *stack.Stack) upload.Store {
	if host := s.Get(stack.VariableHost); host != "" {
		return remote.New(host, s.Get(stack.VariableHostToken), nil)
	}
	return Bucket(s)
}

// Bucket has the uploads that CodeBuild builds.
func Bucket(s *stack.Stack) *s3.Store { return s3.New(s.AWS, s.Get(variableBucket)) }

// Need names the needs of functions that use uploads.
var Need = stack.NeedOnAWS(variableBucket)
