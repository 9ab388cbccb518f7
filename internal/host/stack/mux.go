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
	limiter.Share(quota.NewShared(s.Table(), clock.System, s.Quotas, s.Log))
	mux.Limit(limiter)
	return mux
}
