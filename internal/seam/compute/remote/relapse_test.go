package remote_test

import (
	"context"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
)

// TestTheHostMindsReleases asks about a release that stays, about a release that ends time and
// again, and about a release that is not there.
func TestTheHostMindsReleases(t *testing.T) {
	t.Parallel()
	target := newTarget(t)
	steady, bad := computetest.NewRelease(computetest.Serve), computetest.NewRelease(computetest.Serve, "LATER=exit")
	for _, release := range []compute.Release{steady, bad} {
		if err := target.Apply(t.Context(), release); err != nil {
			t.Fatal(err)
		}
	}
	if why, err := target.AwaitRelapse(t.Context(), bad.Ref); err != nil || !strings.Contains(why, "3 times") {
		t.Errorf("got %q, %v", why, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if why, err := target.AwaitRelapse(over, steady.Ref); err != nil || why != "" {
		t.Errorf("got %q, %v", why, err)
	}
	if why, err := target.AwaitRelapse(t.Context(), computetest.NewRelease(computetest.Serve).Ref); err == nil {
		t.Errorf("got %q of a release that is not there", why)
	}
}
