package remote_test

import (
	"context"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestTheHostTellsOfAgentsThatEnded asks the host as reconcile's timer does. The host does not
// report an end again, unless the agent ends again.
func TestTheHostTellsOfAgentsThatEnded(t *testing.T) {
	t.Parallel()
	target := newTarget(t)
	steady, bad := computetest.NewRelease(computetest.Serve), computetest.NewRelease(computetest.Serve, "LATER=exit")
	check.Must(t, target.Apply(t.Context(), steady))
	check.Must(t, target.Apply(t.Context(), bad))
	ask := func() (told []compute.Status) {
		t.Helper()
		check.Must(t, target.Ends(t.Context(), func(_ context.Context, ref compute.Ref, status compute.Status) {
			if ref != bad.Ref {
				t.Errorf("told of %+v", ref)
			}
			told = append(told, status)
		}))
		return told
	}
	// The agent ends time and again. When it has relapsed, it has ended three times, and the
	// host reports one of these ends.
	_, err := target.AwaitRelapse(t.Context(), bad.Ref)
	check.Must(t, err)
	told := ask()
	if len(told) != 1 || told[0].Reason != compute.ReasonEnded || !strings.Contains(told[0].Message, "exited with code 9") {
		t.Errorf("got %+v", told)
	}
	check.Must(t, target.Remove(t.Context(), bad.Ref))
	_, err = target.Await(t.Context(), bad.Ref)
	check.Must(t, err)
	ask() // the ends until then
	if told = ask(); len(told) != 0 {
		t.Errorf("told again: %+v", told)
	}
}
