// Command authorizer tells API Gateway which callers are admitted: it turns an API key into a
// workspace, and lets strangers through to deployments that decide about strangers by themselves.
// API Gateway invokes it as the REQUEST authorizer of both interfaces.
package main

import (
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/issuers"
)

func main() { lambdahost.Start(stack.Function(open)) }

func open(s *stack.Stack) (_ lambdahost.Function, err error) {
	if s.Tokens, err = issuers.Of(s); err != nil {
		return nil, err
	}
	return lambdahost.Authorizer(s.APIKeys(), s.AgentTokens(), s.Deployments(), clock.System, s.Log), nil
}
