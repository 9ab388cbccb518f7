package stack

import (
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
)

// Mux returns a mux that bounds the requests of each workspace to this process. API Gateway
// bounds the requests of each caller.
func (s *Stack) Mux() *web.Mux {
	mux := web.NewMux(s.Log)
	mux.Limit(web.NewLimiter(s.Quotas, web.Limits{}, clock.System))
	return mux
}
