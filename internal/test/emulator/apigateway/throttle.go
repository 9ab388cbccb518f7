package apigateway

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/slipway-run/slipway/internal/test/template"
)

// buckets holds a token bucket for each method, by its path and verb. A request takes a token of
// its method before anything else is done for it: a request that is refused calls no authorizer.
type buckets map[method]*rate.Limiter

type method struct{ path, verb string }

func newBuckets(api template.API, routes []template.Route) buckets {
	b := buckets{}
	for _, route := range routes {
		limit := api.Throttle(route)
		b[method{route.Path, route.Method}] = rate.NewLimiter(rate.Limit(limit.Rate), limit.Burst)
	}
	return b
}

// take reports whether the route's method takes another request now.
func (b buckets) take(route template.Route, now time.Time) bool {
	return b[method{route.Path, route.Method}].AllowN(now, 1)
}
