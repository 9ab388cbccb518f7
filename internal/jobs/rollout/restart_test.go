package rollout_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/event"
	"github.com/slipway-run/slipway/internal/tenant/workspacesecret"
	"github.com/slipway-run/slipway/internal/test/check"
)

// restartSteps are the steps of a restart that succeeds.
var restartSteps = []string{"Restart", "AwaitRestart"}

// restart restarts a deployment and waits until the workflow has ended.
func (s *server) restart(t *testing.T, ref deployment.Ref) deployment.Restart {
	t.Helper()
	restart, err := s.deployments.Restart(t.Context(), ref)
	check.Must(t, err)
	s.awaitEnd(t, workflow.Restart, restart.ID)
	return restart
}

// ofRestarts returns the events of restarts: type, revision and reason, and whether the event
// names the restart.
func (s *server) ofRestarts(t *testing.T, ref deployment.Ref) (found []event.Event) {
	t.Helper()
	all, err := s.deployments.Events().Deployment(ref.Workspace, ref.Deployment).Read(t.Context(), "", 1000)
	check.Must(t, err)
	for _, e := range all {
		if strings.HasPrefix(string(e.Type), "deployment.restart") {
			found = append(found, e.Event)
		}
	}
	return found
}

func isWait(e event.Event) bool { return e.Type == event.DeploymentRestartWaiting }

// wantTold checks that exactly one event tells of the end of a restart.
func (s *server) wantTold(t *testing.T, d deployment.Deployment, restart deployment.Restart, kind event.Type, reason string, words ...string) {
	t.Helper()
	found := slices.DeleteFunc(s.ofRestarts(t, d.Ref), isWait)
	if len(found) != 1 || found[0].Type != kind || found[0].Revision != d.Active || found[0].Reason != reason {
		t.Fatalf("events of restarts: got %+v, want one %s %s of %s", found, kind, reason, d.Active)
	}
	for _, words := range append(words, restart.ID) {
		if !strings.Contains(found[0].Message, words) {
			t.Errorf("the event says %q, and not %q", found[0].Message, words)
		}
	}
}

// wantRestarted checks which releases were restarted, and with which restart.
func (s *server) wantRestarted(t *testing.T, restartID string, revisions ...string) {
	t.Helper()
	s.target.mu.Lock()
	defer s.target.mu.Unlock()
	slices.Sort(revisions)
	if diff := cmp.Diff(revisions, slices.Sorted(maps.Keys(s.target.restarts))); diff != "" {
		t.Errorf("restarted releases (-want +got):\n%s", diff)
	}
	for id, r := range s.target.restarts {
		if r.id != restartID {
			t.Errorf("revision %s was restarted by %s, not by %s", id, r.id, restartID)
		}
	}
}

func TestARestartStartsTheActiveReleaseAnew(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	before, _ := s.target.release(d.Active)
	restart := s.restart(t, d.Ref)
	if restart.Revision != d.Active {
		t.Errorf("revision %s is restarted, active is %s", restart.Revision, d.Active)
	}
	s.wantRestarted(t, restart.ID, d.Active)
	s.wantTold(t, d, restart, event.DeploymentRestarted, "")
	before.Rested = true // it serves by now
	after, _ := s.target.release(d.Active)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("release (-applied +restarted):\n%s", diff)
	}
	s.wantAtRest(t, d.Ref, revision.Deployed)
	if now := s.get(t, d.Ref); now.Version() != d.Version() || !now.Updated.Equal(d.Updated) {
		t.Error("clients see a change of the deployment")
	}
}

// TestARestartStartsWhatIsBeingDeployedAnew too, if it has read its secrets before: a first
// revision that is not healthy yet, and a canary.
func TestARestartStartsWhatIsBeingDeployedAnew(t *testing.T) {
	t.Parallel()
	t.Run("the first revision", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		m.target.hold(true)
		s := m.start(t, m.table)
		waiting := awaited(&m.target.fake)
		d := s.create(t, fromGit("weather"))
		<-waiting
		restart, err := s.deployments.Restart(t.Context(), d.Ref)
		if err != nil || restart.Revision != d.Latest {
			t.Fatalf("got %+v, %v", restart, err)
		}
		m.target.awaitRestartOf(d.Latest)
		m.target.finish()
		s.awaitEnd(t, workflow.Restart, restart.ID)
		s.wantRestarted(t, restart.ID, d.Latest)
		s.settle(t, d.Ref)
		s.wantAtRest(t, d.Ref, revision.Deployed)
	})
	t.Run("a canary", func(t *testing.T) {
		t.Parallel()
		s, _ := mind(t, steady)
		d := s.settle(t, s.create(t, tried()).Ref)
		var once sync.Once
		var restart deployment.Restart
		s.around = func(ctx context.Context, step string, perform performFunc) (json.RawMessage, error) {
			if d := s.get(t, d.Ref); step == "Canary" && d.Canary > 0 {
				once.Do(func() {
					restart = s.restart(t, d.Ref)
					s.wantRestarted(t, restart.ID, d.Active, d.Slot)
				})
			}
			return perform(ctx)
		}
		s.patch(t, d.Ref, again("dev"))
		s.settle(t, d.Ref)
		s.wantAtRest(t, d.Ref, revision.Deployed)
		s.wantTold(t, d, restart, event.DeploymentRestarted, "")
	})
}

// awaitRestartOf waits until a release was restarted.
func (t *target) awaitRestartOf(revision string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.await(context.Background(), func() bool { return t.restarts[revision].id != "" })
}

// TestARestartWhoseSuccessorsFailIsTold, and the agents that serve stay as they are.
func TestARestartWhoseSuccessorsFailIsTold(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	m.target.health = func(compute.Release) compute.Status {
		return compute.Status{State: compute.Failed, Reason: compute.ReasonStartFailed, Message: "the agent exited with code 7"}
	}
	restart := s.restart(t, d.Ref)
	s.wantTold(t, d, restart, event.DeploymentRestartFailed, compute.ReasonStartFailed, "serve on as they were", "the agent exited with code 7")
	if got := s.executionStatus(t, workflow.Restart, restart.ID); got != workflow.Failed {
		t.Errorf("the workflow is %s", got)
	}
	s.wantAtRest(t, d.Ref, revision.Deployed)
}

// TestAStepOfARestartThatFailsIsRepeated lets each step fail some times, before it did
// anything, and after it did everything.
func TestAStepOfARestartThatFailsIsRepeated(t *testing.T) {
	t.Parallel()
	for _, step := range restartSteps {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s after=%v", step, after), func(t *testing.T) {
				t.Parallel()
				m := newMachine(t)
				s := m.start(t, m.table)
				d := s.settle(t, s.create(t, fromGit("weather")).Ref)
				s.around = failing(step, 3, after)
				restart := s.restart(t, d.Ref)
				s.wantRestarted(t, restart.ID, d.Active)
				s.wantTold(t, d, restart, event.DeploymentRestarted, "")
			})
		}
	}
}

// TestAStepOfARestartThatAlwaysFails is told as a fault of the platform. A step whose answer
// is always lost has done its work, and the earlier result is not told differently.
func TestAStepOfARestartThatAlwaysFails(t *testing.T) {
	t.Parallel()
	const always = 1 << 40
	for _, step := range restartSteps {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s after=%v", step, after), func(t *testing.T) {
				t.Parallel()
				m := newMachine(t)
				s := m.start(t, m.table)
				d := s.settle(t, s.create(t, fromGit("weather")).Ref)
				s.around = failing(step, always, after)
				restart := s.restart(t, d.Ref)
				if step == "AwaitRestart" && after {
					s.wantTold(t, d, restart, event.DeploymentRestarted, "")
				} else {
					s.wantTold(t, d, restart, event.DeploymentRestartFailed, compute.ReasonInternal, "platform")
				}
				if got := s.executionStatus(t, workflow.Restart, restart.ID); got != workflow.Failed {
					t.Errorf("the workflow is %s", got)
				}
				s.wantAtRest(t, d.Ref, revision.Deployed)
			})
		}
	}
}

// TestTroubleOfTheTargetInARestart lets each method of the target fail once, and always.
func TestTroubleOfTheTargetInARestart(t *testing.T) {
	t.Parallel()
	for _, method := range restartSteps {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			s := m.start(t, m.table)
			d := s.settle(t, s.create(t, fromGit("once")).Ref)
			m.target.fail(method, 1)
			s.wantTold(t, d, s.restart(t, d.Ref), event.DeploymentRestarted, "")
			d = s.settle(t, s.create(t, fromGit("always")).Ref)
			m.target.fail(method, -1)
			s.wantTold(t, d, s.restart(t, d.Ref), event.DeploymentRestartFailed, compute.ReasonInternal)
		})
	}
}

// TestEveryStepOfARestartMayBeRepeated performs each step twice, one after the other and at the
// same time.
func TestEveryStepOfARestartMayBeRepeated(t *testing.T) {
	t.Parallel()
	for name, around := range repeats {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			s := m.start(t, m.table)
			d := s.settle(t, s.create(t, fromGit("weather")).Ref)
			s.around = around
			restart := s.restart(t, d.Ref)
			s.wantRestarted(t, restart.ID, d.Active)
			s.wantTold(t, d, restart, event.DeploymentRestarted, "")
		})
	}
}

// TestARestartThatIsKilledGoesOn kills the server after each write of a restart, in one case
// with a target that loses its data, in the other with a target that lives on.
func TestARestartThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("lost=%v", lost), func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n += check.Every(4) {
				m := newMachine(t)
				first := m.start(t, m.table)
				d := first.settle(t, first.create(t, fromGit("weather")).Ref)
				first.kill()
				begun := make(chan deployment.Restart, 1)
				died := dies(t, m, n, func(t *testing.T, s *server) {
					restart, err := s.deployments.Restart(context.WithoutCancel(t.Context()), d.Ref)
					if err != nil {
						return
					}
					begun <- restart
					select {
					case <-s.end(workflow.Restart, restart.ID):
					case <-s.killed:
					}
				})
				if lost {
					m.target.lose()
				}
				s := m.start(t, m.table)
				s.resume(t)
				select {
				case restart := <-begun:
					s.awaitEnd(t, workflow.Restart, restart.ID)
					s.wantTold(t, d, restart, event.DeploymentRestarted, "")
				default: // the caller was told that it did not begin, or was told nothing
				}
				s.wantAtRest(t, d.Ref, revision.Deployed)
				s.kill()
				if t.Failed() {
					t.Fatalf("after the death at write %d", n)
				}
				if !died {
					if n < 4 {
						t.Errorf("a whole restart took %d writes only", n-1)
					}
					return
				}
			}
		})
	}
}

// TestARestartOfADeploymentThatIsDeletedMeanwhile ends without an event, and leaves nothing.
func TestARestartOfADeploymentThatIsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, step := range restartSteps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			s := m.start(t, m.table)
			d := s.settle(t, s.create(t, fromGit("weather")).Ref)
			var once sync.Once
			m.target.entered = func(method, _ string) {
				if method == step {
					once.Do(func() { s.deleteAndAwait(t, d) })
				}
			}
			restart := s.restart(t, d.Ref)
			if got := s.executionStatus(t, workflow.Restart, restart.ID); got != workflow.Succeeded {
				t.Errorf("the workflow is %s", got)
			}
			if found := s.ofRestarts(t, d.Ref); len(found) != 0 {
				t.Errorf("it is told: %+v", found)
			}
			if left := m.target.left(); len(left) != 0 {
				t.Errorf("%v run on", left)
			}
		})
	}
}

// TestAReleaseThatIsReplacedDuringItsRestart does not come back.
func TestAReleaseThatIsReplacedDuringItsRestart(t *testing.T) {
	t.Parallel()
	for _, step := range restartSteps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			s := m.start(t, m.table)
			d := s.settle(t, s.create(t, fromGit("weather")).Ref)
			var once sync.Once
			m.target.entered = func(method, _ string) {
				if method == step {
					once.Do(func() {
						s.patch(t, d.Ref, again("dev"))
						s.settle(t, d.Ref)
					})
				}
			}
			restart := s.restart(t, d.Ref)
			s.wantAtRest(t, d.Ref, revision.Deployed)
			s.wantTold(t, s.get(t, d.Ref), restart, event.DeploymentRestarted, "")
		})
	}
}

// TestARestartGivesAgentsThePresentValues of the secrets that they refer to, and starts no
// agent where a secret is gone.
func TestARestartGivesAgentsThePresentValues(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, s.keep(t, fromGit("weather"))).Ref)
	change := workspacesecret.Patch{Data: map[string]*string{"api-key": new("rotated")}}
	if _, _, err := s.deployments.WorkspaceSecrets().Patch(t.Context(), kept, change); err != nil {
		t.Fatal(err)
	}
	if release, _ := m.target.release(d.Active); release.Env["KEY"] != "planted" {
		t.Errorf("before the restart it has %q", release.Env["KEY"])
	}
	restart := s.restart(t, d.Ref)
	s.wantTold(t, d, restart, event.DeploymentRestarted, "")
	if release, _ := m.target.release(d.Active); release.Env["KEY"] != "rotated" {
		t.Errorf("after the restart it has %q", release.Env["KEY"])
	}
	s.loseSecret(t)
	failed := s.restart(t, d.Ref)
	if found := s.ofRestarts(t, d.Ref); len(found) != 2 || found[1].Type != event.DeploymentRestartFailed || found[1].Reason != revision.ReasonSecretMissing {
		t.Errorf("events of restarts: %+v", found)
	}
	if got := s.executionStatus(t, workflow.Restart, failed.ID); got != workflow.Failed {
		t.Errorf("the workflow is %s", got)
	}
	s.wantRestarted(t, restart.ID, d.Active)
	if strings.Contains(s.log.String(), "rotated") {
		t.Error("the log shows the value")
	}
}

// TestNoRestartKeepsTheProcess that is about to end; the next process carries the restart to
// its end.
func TestNoRestartKeepsTheProcess(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.patience = time.Hour
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	m.target.hold(true)
	waiting := m.target.entering("AwaitRestart")
	restart, err := s.deployments.Restart(t.Context(), d.Ref)
	check.Must(t, err)
	<-waiting
	s.stop(t, func() {})
	if found := s.ofRestarts(t, d.Ref); len(found) != 0 {
		t.Errorf("it is told: %+v", found)
	}
	m.target.finish()
	next := m.start(t, m.table)
	next.resume(t)
	next.awaitEnd(t, workflow.Restart, restart.ID)
	next.wantTold(t, d, restart, event.DeploymentRestarted, "")
}

// TestARestartWaitsForRoom: a quota that is used up for a while only delays a restart, whether
// it shows at the beginning of the restart or later. A quota that stays used up is told by its
// name. One event tells meanwhile what the restart waits for.
func TestARestartWaitsForRoom(t *testing.T) {
	t.Parallel()
	full := compute.Status{State: compute.Failed, Reason: "NO_CAPACITY", Message: "the quota tasks of the account"}
	for name, c := range map[string]struct {
		arrange func(m *machine)
		told    event.Type
		reason  string
	}{
		"at its beginning": {func(m *machine) { m.target.fail("Restart", 20) }, event.DeploymentRestarted, ""},
		"for hours": {func(m *machine) {
			m.target.fail("Restart", -1)
			var looks atomic.Int64
			m.now = func() time.Time { return clock.System().Add(time.Duration(looks.Add(1)) * 5 * time.Minute) }
		}, event.DeploymentRestartFailed, "NO_CAPACITY"},
		"for hours after it": {func(m *machine) {
			m.target.health = func(compute.Release) compute.Status { return full }
			var looks atomic.Int64
			m.now = func() time.Time { return clock.System().Add(time.Duration(looks.Add(1)) * 5 * time.Minute) }
		}, event.DeploymentRestartFailed, "NO_CAPACITY"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			first := m.start(t, m.table)
			d := first.settle(t, first.create(t, fromGit("weather")).Ref)
			first.kill()
			m.target.injected = &compute.NoCapacity{Quota: "tasks"}
			c.arrange(m)
			s := m.start(t, m.table)
			restart := s.restart(t, d.Ref)
			s.wantTold(t, d, restart, c.told, c.reason)
			told := s.ofRestarts(t, d.Ref)
			if e := told[0]; len(told) != 2 || !isWait(e) || e.Revision != d.Active || e.Reason != "NO_CAPACITY" ||
				!strings.Contains(e.Message, restart.ID+" waits. ") || !strings.Contains(e.Message, "the quota tasks of the ") {
				t.Errorf("got %+v, want one event first that names the quota", told)
			}
		})
	}
}
