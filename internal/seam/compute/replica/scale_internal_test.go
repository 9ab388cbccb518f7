package replica

import (
	"log/slog"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

// TestAReleaseThatHasJustGoneToSleepKeepsItsSize has the scaler act on what it saw before.
func TestAReleaseThatHasJustGoneToSleepKeepsItsSize(t *testing.T) {
	t.Parallel()
	r := newRelease(New(nil, Limits{}, nil, slog.New(slog.DiscardHandler), nil, nil), compute.Release{})
	r.asleep = true
	r.retire()
	if s := r.add(); s != nil || len(r.slots) != 0 {
		t.Errorf("it has %d replicas", len(r.slots))
	}
}
