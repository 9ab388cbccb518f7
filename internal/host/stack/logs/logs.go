// Package logs gives functions the output of builds and agents, and lets them add the output
// that listeners send. It is apart from package stack, so that only functions that use it link
// it.
package logs

import (
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/cloudwatch"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/remote"
)

// Names of the variables.
const (
	variableAgentLog = "SLIPWAY_ECS_LOG_GROUP"
	variableBuildLog = "SLIPWAY_CODEBUILD_LOG_GROUP"
)

// Of returns the logs of a stack's deployments: in CloudWatch, or on the machine that runs the
// agents as processes.
func Of(s *stack.Stack) *deployment.Logs {
	logs := &deployment.Logs{Deployments: s.Deployments(), Now: clock.System}
	if host := s.Get(stack.VariableHost); host != "" {
		kept := remote.New(host, s.Get(stack.VariableHostToken), nil)
		logs.Reader, logs.Appender = kept, kept
	} else {
		kept := cloudwatch.New(cloudwatch.Config{AWS: s.AWS, Builds: s.Get(variableBuildLog), Agents: s.Get(variableAgentLog)})
		logs.Reader, logs.Appender, logs.Drain = kept, kept, compute.DrainLimit
	}
	return logs
}

// Need names the needs of functions that use logs.
var Need = stack.NeedOnAWS(variableAgentLog, variableBuildLog)
