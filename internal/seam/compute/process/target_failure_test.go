package process_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestFirstStartFails(t *testing.T) {
	t.Parallel()
	taken := listen(t)
	for name, c := range map[string]struct {
		release compute.Release
		adjust  func(*compute.Release)
		reason  string
		words   []string
	}{
		"it ends at once": {
			release: computetest.NewRelease(computetest.Exit),
			reason:  compute.ReasonStartFailed,
			words:   []string{"exited with code 7"},
		},
		"a shell cannot find the program": {
			release: computetest.NewRelease(computetest.Serve),
			adjust:  func(r *compute.Release) { r.Artifact.Start = []string{"sh", "-c", "no-such-agent"} },
			reason:  compute.ReasonStartFailed,
			words:   []string{"exited with code 127", "no-such-agent"},
		},
		"there is no such program": {
			release: computetest.NewRelease(computetest.Serve),
			adjust:  func(r *compute.Release) { r.Artifact.Start = []string{"no-such-agent"} },
			reason:  compute.ReasonStartFailed,
			words:   []string{"could not be started", "no-such-agent"},
		},
		"there is no start command": {
			release: computetest.NewRelease(computetest.Serve),
			adjust:  func(r *compute.Release) { r.Artifact.Start = nil },
			reason:  compute.ReasonStartFailed,
			words:   []string{"could not be started", "no program is named"},
		},
		"its tree is gone": {
			release: computetest.NewRelease(computetest.Serve),
			adjust:  func(r *compute.Release) { r.Artifact.Dir = "/no/such/tree" },
			reason:  compute.ReasonStartFailed,
			words:   []string{"could not be started", "/no/such/tree"},
		},
		"it says nothing": {
			release: computetest.NewRelease(computetest.Serve),
			adjust:  func(r *compute.Release) { r.Artifact.Start = []string{"false"} },
			reason:  compute.ReasonStartFailed,
			words:   []string{"exited with code 1", "It printed nothing."},
		},
		"its fixed port is taken": {
			release: computetest.NewRelease(computetest.Serve, "PORT="+taken),
			reason:  compute.ReasonPortTaken,
			words:   []string{"PORT=" + taken, "127.0.0.1:" + taken, "in use by another process"},
		},
		"its port is taken again and again": {
			release: computetest.NewRelease("rival", "ALWAYS=1"),
			reason:  compute.ReasonPortTaken,
			words:   []string{"in use by another process", "bind: address already in use"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			if c.adjust != nil {
				c.adjust(&c.release)
			}
			m.apply(t, c.release)
			got := m.want(t, c.release, compute.Failed, c.reason)
			for _, words := range c.words {
				if !strings.Contains(got.Message, words) {
					t.Errorf("message %q does not say %q", got.Message, words)
				}
			}
			if strings.Contains(got.Message, "line 19\n") {
				t.Errorf("message %q has more than the last 40 lines", got.Message)
			}
			m.wantUnavailable(t, t.Context(), c.release, compute.Failed)
		})
	}
}

// TestNoContract covers programs that listen, but are no agents.
func TestNoContract(t *testing.T) {
	t.Parallel()
	for agent, words := range map[string]string{"stranger": "it answered 404 Not Found", "mute": "its answer is not HTTP"} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			m, r := newMachine(t, func(c *process.Config) { c.ContractLimit = 50 * time.Millisecond }), computetest.NewRelease(agent)
			m.apply(t, r)
			got := m.want(t, r, compute.Failed, compute.ReasonNoContract)
			if !strings.Contains(got.Message, "does not speak the container contract") || !strings.Contains(got.Message, words) {
				t.Errorf("message %q", got.Message)
			}
		})
	}
}

func listen(t *testing.T) (port string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, listener.Close()) })
	_, port, err = net.SplitHostPort(listener.Addr().String())
	check.Must(t, err)
	return port
}

func TestNotReadyInTime(t *testing.T) {
	t.Parallel()
	for agent, words := range map[string][]string{
		"deaf": {"did not answer GET http://127.0.0.1:", "within 2s", "connection refused", "loading"},
		"sick": {"it answered 503 Service Unavailable", "It printed nothing."},
	} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			limit := 2 * time.Second
			m, r := newMachine(t, func(c *process.Config) { c.ReadyLimit = limit }), computetest.NewRelease(agent)
			if agent == "deaf" { // a release's own limit counts instead
				m, r.ReadyLimit = newMachine(t), limit
			}
			m.apply(t, r)
			got := m.want(t, r, compute.Failed, compute.ReasonNotReady)
			for _, want := range words {
				if !strings.Contains(got.Message, want) {
					t.Errorf("message %q does not say %q", got.Message, want)
				}
			}
		})
	}
}
