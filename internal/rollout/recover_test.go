package rollout_test

import (
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/compute"
)

// TestAnAgentThatCrashedRecovers when it is healthy, and has not ended for a while, and not before.
func TestAnAgentThatCrashedRecovers(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	s.deployments.Alarm(t.Context(), compute.Ref(d.Revision(d.Active)), compute.Status{State: compute.Progressing, Reason: compute.ReasonEnded, Message: "it ended"})
	crashed := func(when string, want bool) {
		t.Helper()
		s.rescue(t)
		now, err := s.deployments.Get(t.Context(), d.Ref)
		if err != nil || now.Crashed.IsZero() == want {
			t.Errorf("%s: it crashed at %v (%v)", when, now.Crashed, err)
		}
	}
	later := func(by time.Duration) { s.rollout.Now = func() time.Time { return clock.System().Add(by) } }
	crashed("at once", true)
	later(4 * time.Minute)
	crashed("after four minutes", true)
	later(6 * time.Minute)
	healthy := m.target.health
	m.target.health = func(compute.Release) compute.Status { return compute.Status{State: compute.Progressing} }
	m.target.finish()
	crashed("while it is being started", true)
	m.target.health = healthy
	m.target.finish()
	crashed("when it is healthy again", false)
	events, err := s.deployments.Events().Deployment(d.Workspace, d.Deployment).Read(t.Context(), "", 100)
	if err != nil || len(events) < 2 || events[len(events)-2].Type != "agent.crashed" || events[len(events)-1].Type != "agent.recovered" {
		t.Errorf("got %v (%v)", events, err)
	}
	if left := s.overdue(t); len(left) != 0 {
		t.Errorf("%d deployments are looked after still", len(left))
	}
}
