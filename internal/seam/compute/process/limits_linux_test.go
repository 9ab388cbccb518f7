package process_test

import (
	"context"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
)

// TestAnAgentThatNeedsTooMuchMemory fails for that reason, when it starts and when it is
// called. If the system cannot limit its memory, it serves.
func TestAnAgentThatNeedsTooMuchMemory(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), computetest.NewRelease("hog")
	r.Resources = compute.Resources{MemoryMB: 96}
	m.apply(t, r)
	if child.CanLimit() != nil {
		m.want(t, r, compute.Healthy, "")
	} else if got := m.want(t, r, compute.Failed, compute.ReasonOutOfMemory); !strings.Contains(got.Message, "used more than the 96 MB of memory that it may") || !strings.Contains(got.Message, "loading 256 MB") {
		t.Errorf("got %q", got.Message)
	}

	r = computetest.NewRelease("hog", "LATER=hog")
	r.Resources = compute.Resources{MemoryMB: 96}
	m.apply(t, r)
	endpoint, done := m.acquire(t, r)
	defer done()
	answer, err := computetest.Ask(patience(t), endpoint, "hog")
	if child.CanLimit() != nil {
		if answer != "done" || err != nil {
			t.Errorf("got %q, %v", answer, err)
		}
	} else if why := endpoint.Witness.WhyEnded(patience(t)); err == nil || why != "the agent was ended because it used more than the 96 MB of memory that it may." {
		t.Errorf("got %q, %v; it ended because: %q", answer, err, why)
	}
}

// TestWhyAnAgentHasEnded: its callers get the reason without the agent's output.
func TestWhyAnAgentHasEnded(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), computetest.NewRelease(computetest.Serve)
	m.apply(t, r)
	endpoint, done := m.acquire(t, r)
	defer done()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if why := endpoint.Witness.WhyEnded(over); why != "" {
		t.Errorf("it runs, and has ended because: %q", why)
	}
	if _, err := computetest.Ask(patience(t), endpoint, "crash"); err == nil {
		t.Error("the agent did not crash")
	}
	if why := endpoint.Witness.WhyEnded(patience(t)); why != "the agent exited with code 9." {
		t.Errorf("it has ended because: %q", why)
	}
}
