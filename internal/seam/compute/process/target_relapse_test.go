package process_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
	"github.com/slipway-run/slipway/internal/test/check"
)

// relapse waits until the release cannot be relied on, and returns why.
func (m machine) relapse(t *testing.T, r compute.Release) string {
	t.Helper()
	why, err := m.AwaitRelapse(patience(t), r.Ref)
	check.Must(t, err)
	return why
}

// TestAnAgentThatEndsTimeAndAgain gets a relapse with the reason, and is started again all the
// same.
func TestAnAgentThatEndsTimeAndAgain(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), computetest.NewRelease(computetest.Serve, "LATER=exit")
	r.Env["SECRET"] = "open-sesame"
	m.apply(t, r)
	why := m.relapse(t, r)
	for _, words := range []string{"3 times after it had been healthy", "exited with code 9", "crashing soon after ***"} {
		if !strings.Contains(why, words) {
			t.Errorf("%q does not say %q", why, words)
		}
	}
	m.want(t, r, compute.Healthy, "")
}

// TestTheAlarmIsRaised for each end of an agent that was healthy, and for an agent that cannot
// be started, but not for an agent that is removed.
func TestTheAlarmIsRaised(t *testing.T) {
	t.Parallel()
	type alarm struct {
		ref    compute.Ref
		status compute.Status
	}
	raised, over := make(chan alarm, 100), patience(t).Done()
	m := newMachine(t, func(c *process.Config) {
		c.Alarm = func(_ context.Context, ref compute.Ref, status compute.Status) { raised <- alarm{ref, status} }
	})
	next := func() (compute.Ref, compute.Status) {
		t.Helper()
		select {
		case a := <-raised:
			return a.ref, a.status
		case <-over:
			t.Fatal("nobody raises an alarm")
			return compute.Ref{}, compute.Status{}
		}
	}
	steady, short, broken := computetest.NewRelease(computetest.Serve), computetest.NewRelease(computetest.Serve, "LATER=exit"), computetest.NewRelease(computetest.Exit)
	m.apply(t, steady)
	m.want(t, steady, compute.Healthy, "")
	check.Must(t, m.Remove(t.Context(), steady.Ref))
	m.apply(t, broken)
	if ref, status := next(); ref != broken.Ref || status.State != compute.Failed || status.Reason != compute.ReasonStartFailed || !strings.Contains(status.Message, "code 7") {
		t.Errorf("of one that cannot be started: %v %+v", ref, status)
	}
	m.apply(t, short)
	for range 5 { // also when the release counts as relapsed
		ref, status := next()
		if ref != short.Ref || status.Reason != compute.ReasonEnded || !strings.Contains(status.Message, "exited with code 9") || !strings.Contains(status.Message, "crashing soon after") {
			t.Errorf("of one that ends: %v %+v", ref, status)
		}
	}
}

func TestOneEndIsNoRelapse(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), computetest.NewRelease(computetest.Serve)
	m.apply(t, r)
	first, done := m.acquire(t, r)
	if _, err := computetest.Ask(patience(t), first, "crash"); err == nil {
		t.Error("the agent did not crash")
	}
	done()
	// The first agent has ended when another agent answers.
	for second := first; second.URL == first.URL; {
		var done func()
		second, done = m.acquire(t, r)
		done()
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if why, err := m.AwaitRelapse(over, r.Ref); why != "" || err != nil {
		t.Errorf("got %q, %v", why, err)
	}
}

// TestAnAgentThatDoesNotAnswerIsStartedAgain makes an agent deaf while it has a caller. The
// target leaves it alone until the caller has gone, and then starts it again.
func TestAnAgentThatDoesNotAnswerIsStartedAgain(t *testing.T) {
	t.Parallel()
	const limit = 300 * time.Millisecond
	m, r := newMachine(t, func(c *process.Config) { c.LiveLimit = limit }), computetest.NewRelease(computetest.Serve)
	m.apply(t, r)
	endpoint, done := m.acquire(t, r)
	before := ask(t, endpoint, "pid")
	ask(t, endpoint, "deafen")
	busy, cancel := context.WithTimeout(t.Context(), 2*limit)
	defer cancel()
	if why, err := m.AwaitRelapse(busy, r.Ref); why != "" || err != nil {
		t.Errorf("while it has a caller: got %q, %v", why, err)
	}
	done()
	if why := m.relapse(t, r); !strings.Contains(why, "did not answer GET /ping with 200 for 300ms") || !strings.Contains(why, "503") {
		t.Errorf("got %q", why)
	}
	endpoint, done = m.acquire(t, r)
	defer done()
	if after := ask(t, endpoint, "pid"); after == before {
		t.Error("it is the same agent")
	}
}

func TestNobodyMindsWhatIsNotThere(t *testing.T) {
	t.Parallel()
	if _, err := newMachine(t).AwaitRelapse(t.Context(), computetest.NewRelease(computetest.Serve).Ref); err == nil {
		t.Error("got no error")
	}
}
