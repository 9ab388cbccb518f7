// Command authorizer tells API Gateway which callers are admitted: it turns an API key into a
// workspace, and lets strangers through to deployments that decide about strangers by themselves.
// API Gateway invokes it as the REQUEST authorizer of both interfaces.
package main

import (
	"log/slog"
	"os"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/issuers"
)

func main() { lambdahost.Start(open) }

func open(log *slog.Logger) (lambdahost.Function, error) {
	s, err := stack.Open(os.Getenv, log, stack.NeedTable, stack.NeedKey)
	if err != nil {
		return nil, err
	}
	if s.Tokens, err = issuers.Of(s); err != nil {
		return nil, err
	}
	return lambdahost.Authorizer(s.APIKeys(), s.AgentTokens(), s.Deployments(), clock.System, log), nil
}
