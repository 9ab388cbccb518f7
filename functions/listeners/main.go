// Command listeners serves the part of the control plane about listeners: their settings, which
// users write, and the calls of the listeners themselves. API Gateway invokes it, at the root
// and under /api-host.
package main

import (
	"context"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/logs"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

func main() { lambdahost.Start(stack.Function(open, stack.NeedEngine, logs.Need)) }

func open(s *stack.Stack) (lambdahost.Function, error) {
	s.Alarm = func(ctx context.Context, ref compute.Ref, status compute.Status) {
		s.Deployments().Alarm(ctx, ref, status)
	}
	var gateway lambdahost.Gateway
	mux := s.Mux()
	err := controlplane.Register(mux, controlplane.Config{
		Listeners: s.Listeners(), Deployments: s.Deployments(), Logs: logs.Of(s), Answers: s.Answers(),
		Tenancy:       controlplane.Tenancy{Audit: s.Audit()},
		Authenticator: gateway, AgentURL: gateway.AgentURL(s.BaseURL), BaseURL: gateway.BaseURL(s.BaseURL),
	})
	return lambdahost.Buffered(mux, s.Log), err
}
