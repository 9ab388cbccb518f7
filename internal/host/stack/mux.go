package stack

import (
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
)

// Mux returns a mux that bounds what each workspace asks of this process. How often each caller may
// ask is bounded by API Gateway.
func (s *Stack) Mux() *web.Mux {
	mux := web.NewMux(s.Log)
	mux.Limit(web.NewLimiter(s.Quotas, web.Limits{}, clock.System))
	return mux
}
