package stack

import (
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// Mux returns a mux that bounds the requests and the connections of each workspace to all
// processes of the stack. API Gateway bounds the requests of each caller.
func (s *Stack) Mux() *web.Mux {
	mux := web.NewMux(s.Log)
	limiter := web.NewLimiter(s.Quotas, web.Limits{}, clock.System)
	limiter.Shared = s.counts()
	mux.Limiter = limiter
	mux.Proxies = s.Proxies
	return mux
}

// Usage reports how much of its quotas a workspace uses.
func (s *Stack) Usage() *quota.Usage {
	return &quota.Usage{Table: s.Table(), Limits: s.Quotas, Live: s.counts()}
}

// counts are what all processes of the stack count together.
func (s *Stack) counts() *quota.Shared {
	return quota.NewShared(s.Table(), clock.System, s.Quotas, s.Log)
}
