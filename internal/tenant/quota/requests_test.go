package quota_test

import (
	"errors"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestRequestsOfAllProcessesAreCounted sends far more requests than the quota to two processes in
// turn: what they accept together is within the bound that the package comment names.
func TestRequestsOfAllProcessesAreCounted(t *testing.T) {
	t.Parallel()
	const (
		perSecond = 5
		allowed   = 10 * perSecond // in a window of 10 s
		grain     = 10
	)
	c := fixtures.NewClock()
	at := processes(t, c.Now, quota.Limits{}.With(quota.Requests, perSecond))
	send := func(workspace string) (accepted int) {
		for i := range 20 * allowed {
			err := at[i%2].Count(t.Context(), workspace)
			if err == nil {
				accepted++
				continue
			}
			wantRefused(t, err, quota.Requests)
			if refusal, ok := errors.AsType[*fault.Error](err); !ok || refusal.RetryAfter != 7*time.Second {
				t.Fatalf("got %+v, want a refusal until the end of the window", err)
			}
		}
		return accepted
	}
	c.Pass(3 * time.Second)
	for range 3 {
		if got := send(workspace); got < allowed || got > allowed+3*grain {
			t.Errorf("two processes accept %d requests, want %d to %d", got, allowed, allowed+3*grain)
		}
		if err := at[0].Count(t.Context(), stranger); err != nil {
			t.Errorf("another workspace: %v", err)
		}
		c.Pass(10 * time.Second)
	}
}
