package rollout_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
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

// TestAnAgentThatCannotBeRestoredIsToldOf, and is started as soon as possible, without a new
// deployment.
func TestAnAgentThatCannotBeRestoredIsToldOf(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	first := m.start(t, m.table)
	d := first.settle(t, first.create(t, first.keep(t, fromGit("weather"))).Ref)
	first.loseSecret(t)
	first.kill()
	m.target.lose()
	s := m.start(t, m.table)
	if err := s.rollout.Restore(t.Context()); err == nil {
		t.Error("it was restored without its secret")
	}
	events, err := s.deployments.Events().Deployment(d.Workspace, d.Deployment).Read(t.Context(), "", 100)
	if err != nil || events[len(events)-1].Type != "agent.crashed" || events[len(events)-1].Reason != revision.ReasonSecretMissing {
		t.Errorf("got %v (%v)", events, err)
	}
	if _, err := s.deployments.WorkspaceSecrets().Create(context.Background(), kept, map[string]string{"api-key": "again"}); err != nil {
		t.Fatal(err)
	}
	for after, crashed := range []bool{true, false} {
		s.rollout.Now = func() time.Time { return clock.System().Add(time.Duration(after+1) * 20 * time.Minute) }
		s.rescue(t)
		if release, there := m.target.release(d.Active); !there || release.Env["KEY"] != "again" {
			t.Errorf("the agent was started: %v, with %q", there, release.Env["KEY"])
		}
		if now := s.get(t, d.Ref); now.Crashed.IsZero() == crashed {
			t.Errorf("at look %d it crashed at %v", after+1, now.Crashed)
		}
	}
}

// TestAnAgentThatIsReplacedIsNotStartedAgain: reconcile has read the deployment before the
// promotion of another revision, and looks at the agent, or starts it, after the promotion.
func TestAnAgentThatIsReplacedIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"Await", "Apply"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			s := m.start(t, m.table)
			d := s.settle(t, s.create(t, fromGit("weather")).Ref)
			s.deployments.Alarm(t.Context(), compute.Ref(d.Revision(d.Active)), compute.Status{State: compute.Progressing, Reason: compute.ReasonEnded, Message: "it ended"})
			s.rollout.Now = func() time.Time { return clock.System().Add(6 * time.Minute) }
			if call == "Apply" {
				m.target.lose()
			}
			calls := 0
			m.target.mu.Lock()
			m.target.entered = func(method, revisionID string) {
				if method != call || revisionID != d.Active {
					return
				}
				if calls++; calls == 1 {
					s.patch(t, d.Ref, again("dev"))
					s.settle(t, d.Ref)
				}
			}
			m.target.mu.Unlock()
			s.rescue(t)
			if calls == 0 {
				t.Error("reconcile did not look after the agent")
			}
			s.wantAtRest(t, d.Ref, revision.Deployed)
		})
	}
}

// TestAnAgentThatHadCrashedMayNotBeginAsleep: it counts as recovered only if it runs. An agent that
// had not crashed may begin asleep.
func TestAnAgentThatHadCrashedMayNotBeginAsleep(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	for _, crashed := range []bool{false, true} {
		if crashed {
			s.deployments.Alarm(t.Context(), compute.Ref(d.Revision(d.Active)), compute.Status{State: compute.Progressing, Reason: compute.ReasonEnded, Message: "it ended"})
		}
		s.kill()
		m.target.lose()
		s = m.start(t, m.table)
		s.resume(t)
		if release, there := m.target.release(d.Active); !there || release.Rested == crashed {
			t.Errorf("crashed %v: it was started: %v, and may begin asleep: %v", crashed, there, release.Rested)
		}
	}
}

// full is a table on a disk that may be full.
type full struct {
	table.Table
	on bool
}

var errFull = errors.New("the disk is full")

func (f *full) Transact(ctx context.Context, writes ...table.Write) error {
	if f.on {
		return errFull
	}
	return f.Table.Transact(ctx, writes...)
}

func (f *full) InOrder(ctx context.Context, writes ...table.Write) error {
	if f.on {
		return errFull
	}
	return f.Table.InOrder(ctx, writes...)
}

// TestAnAgentIsStartedWhenTheDiskHasRoom has a server that starts on a full disk: it can neither
// start an agent nor note this.
func TestAnAgentIsStartedWhenTheDiskHasRoom(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	first := m.start(t, m.table)
	d := first.settle(t, first.create(t, fromGit("weather")).Ref)
	first.kill()
	m.target.lose()
	disk := &full{Table: m.table}
	s := m.start(t, disk)
	s.rollout.Trials = s.workflow
	disk.on = true
	if err := s.rollout.Restore(t.Context()); !errors.Is(err, errFull) {
		t.Errorf("Restore: got %v, want %v", err, errFull)
	}
	if err := s.rollout.Rescue(t.Context(), clock.System()); !errors.Is(err, errFull) {
		t.Errorf("Rescue on a full disk: got %v, want %v", err, errFull)
	}
	if left := m.target.left(); len(left) > 0 {
		t.Errorf("%v were started on a full disk", left)
	}
	disk.on = false
	for range 2 {
		if err := s.rollout.Rescue(t.Context(), clock.System()); err != nil {
			t.Errorf("Rescue: %v", err)
		}
		if !slices.Contains(m.target.left(), d.Active) {
			t.Fatal("the agent was not started")
		}
	}
	// An agent that ends afterwards is not started again: its target does this.
	m.target.lose()
	if err := s.rollout.Rescue(t.Context(), clock.System()); err != nil || len(m.target.left()) > 0 {
		t.Errorf("left are %v (%v)", m.target.left(), err)
	}
}

// TestAttackAReleaseWhoseStartPanics when a server starts its releases again: the server
// starts, with the other releases. The panic is told and logged once, and the release is tried
// again later.
func TestAttackAReleaseWhoseStartPanics(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	first := m.start(t, m.table)
	poisoned, other := first.settle(t, first.create(t, fromGit("poisoned")).Ref), first.settle(t, first.create(t, fromGit("other")).Ref)
	first.kill()
	m.target.lose()
	healthy := m.target.health
	m.target.health = func(release compute.Release) compute.Status {
		if release.Revision == poisoned.Active {
			panic("poison")
		}
		return healthy(release)
	}
	s := m.start(t, m.table)
	if err := s.rollout.Restore(t.Context()); err == nil {
		t.Error("nothing went wrong")
	}
	if !slices.Contains(m.target.left(), other.Active) {
		t.Error("the other release was not brought back")
	}
	events, err := s.deployments.Events().Deployment(poisoned.Workspace, poisoned.Deployment).Read(t.Context(), "", 100)
	if last := events[len(events)-1]; err != nil || last.Type != "agent.crashed" || last.Reason != compute.ReasonInternal {
		t.Errorf("got %+v (%v)", last, err)
	}
	if logged := strings.Count(m.log.String(), "work panicked"); logged != 1 || !strings.Contains(m.log.String(), "startAgain") {
		t.Errorf("%d panics are logged:\n%s", logged, m.log.String())
	}
	m.target.health = healthy
	s.rollout.Now = func() time.Time { return clock.System().Add(20 * time.Minute) }
	s.rescue(t)
	if !slices.Contains(m.target.left(), poisoned.Active) {
		t.Error("the release was not tried again")
	}
}

// condemned stands for a server that has died twice with any work that it is asked for.
type condemned struct{}

func (condemned) Try(context.Context, string, func() error) error { return workflow.ErrServerDied }

// TestAttackAReleaseThatHasEndedTwoServers: the release is not started again, and that is
// told.
func TestAttackAReleaseThatHasEndedTwoServers(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	first := m.start(t, m.table)
	d := first.settle(t, first.create(t, fromGit("weather")).Ref)
	first.kill()
	m.target.lose()
	s := m.start(t, m.table)
	s.rollout.Trials = condemned{}
	if err := s.rollout.Restore(t.Context()); !errors.Is(err, workflow.ErrServerDied) {
		t.Errorf("got %v", err)
	}
	if slices.Contains(m.target.left(), d.Active) {
		t.Error("it was started again")
	}
	events, err := s.deployments.Events().Deployment(d.Workspace, d.Deployment).Read(t.Context(), "", 100)
	if last := events[len(events)-1]; err != nil || last.Type != "agent.crashed" || last.Reason != compute.ReasonInternal || !strings.Contains(last.Message, "crashed twice") {
		t.Errorf("got %+v (%v)", last, err)
	}
}
