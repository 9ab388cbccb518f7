package quota_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestReplicasAreExact places many deployments at once, on a workspace without a count, and on one
// whose count is from a version that did not count replicas.
func TestReplicasAreExact(t *testing.T) {
	t.Parallel()
	for name, counted := range map[string]bool{"no count": false, "a count of deployments": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tb, limits := fixtures.DomainTable(t, clock.System), quota.Limits{}.With(quota.Replicas, 7)
			place := func(more quota.Scale) error {
				return record.Decide(t.Context(), tb, func(ctx context.Context) (o record.Outbox, err error) {
					return o, limits.Rescale(ctx, tb, clock.System(), &o, workspace, more)
				})
			}
			if counted {
				write, err := limits.Take(t.Context(), tb, clock.System(), quota.Deployments, workspace, 1)
				check.Must(t, err)
				check.Must(t, tb.Transact(t.Context(), write))
			}
			var placed atomic.Int64
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() {
					err := place(quota.Scale{Deployments: 1, Replicas: 2})
					if err == nil {
						placed.Add(1)
					} else if !fault.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), "quota replicas") {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if placed.Load() != 3 {
				t.Errorf("%d deployments have 2 of 7 replicas each, want 3", placed.Load())
			}
			if err := place(quota.Scale{Replicas: 2}); !fault.Is(err, fault.Forbidden) {
				t.Errorf("a deployment that wants more: %v", err)
			}
			for _, more := range []quota.Scale{{Replicas: 1}, {Replicas: 5, Beyond: true}, {Deployments: -1, Replicas: -7}} {
				if err := place(more); err != nil {
					t.Errorf("%+v: %v", more, err)
				}
			}
			used, err := (&quota.Usage{Table: tb, Limits: limits}).Of(t.Context(), workspace)
			check.Must(t, err)
			for _, use := range used {
				if use.Name == quota.Replicas && *use.Used != 5 {
					t.Errorf("%d replicas are shown, want 5", *use.Used)
				}
			}
		})
	}
}
