package agentserver_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// TestAttackASlowAuthenticationTakesThePlacesOfItsWorkspace checks that only as many requests wait
// for a slow agent as the workspace has places, and that answered requests give their places back.
func TestAttackASlowAuthenticationTakesThePlacesOfItsWorkspace(t *testing.T) {
	t.Parallel()
	const places, requests = 2, 5
	limits := quota.Limits{}.With(quota.Streams, places)
	f, g, _, _ := setUpGuardedWithin(t, agentserver.StrangerLimits{}, limits, func(c *agentserver.Config) { c.Patience = time.Millisecond })
	release := make(chan struct{})
	g.delay(func() { <-release })
	answers := make(chan response, requests)
	for range requests {
		go func() { answers <- f.as(t, "waits", "POST", "/threads/search", object{}) }()
	}
	for range requests - places {
		wantDetail(t, <-answers, http.StatusTooManyRequests, limits.Refuse(quota.Streams).Error())
	}
	close(release)
	for range places {
		wantStatus(t, <-answers, http.StatusOK)
	}
	wantStatus(t, f.as(t, "ada", "POST", "/runs/wait", hi()), http.StatusOK) // this needs a place
}
