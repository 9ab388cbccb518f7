package rollout_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/event"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestARestartBringsNoReleaseBackThatFails for a fault of the platform, whatever part of it is
// being removed meanwhile. The restart is told when the revision has failed.
func TestARestartBringsNoReleaseBackThatFails(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(m *machine) *fake{
		"its release": func(m *machine) *fake { return &m.target.fake },
		"its build":   func(m *machine) *fake { return &m.builder.fake },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			s := m.start(t, m.table)
			first := s.settle(t, s.create(t, fromGit("weather")).Ref)
			var restart deployment.Restart
			var once sync.Once
			restarted, failed := make(chan struct{}), make(chan struct{})
			arrive := sync.OnceFunc(func() { close(restarted) })
			of(m).entered = func(method, of string) {
				if method == "Remove" && of != first.Active {
					once.Do(func() {
						var err error
						if restart, err = s.deployments.Restart(t.Context(), first.Ref); err != nil {
							t.Error(err)
							return
						}
						<-restarted
					})
				}
			}
			always := failing("AwaitHealthy", 1<<40, false)
			s.around = func(ctx context.Context, step string, perform performFunc) (json.RawMessage, error) {
				if step == "AwaitRestart" {
					arrive()
					<-failed
				}
				return always(ctx, step, perform)
			}
			s.patch(t, first.Ref, again("dev"))
			d := s.settle(t, first.Ref)
			close(failed)
			s.awaitEnd(t, workflow.Restart, restart.ID)
			s.wantAtRest(t, d.Ref, revision.DeployFailed)
			s.wantTold(t, d, restart, event.DeploymentRestarted, "")
			if r := s.revision(t, d.Ref, d.Latest); r.Reason != compute.ReasonInternal {
				t.Errorf("it failed with %s: %s", r.Reason, r.Message)
			}
		})
	}
}

// TestARestartWhereNothingServes: the restart is told when the revision in flight has ended,
// with the result of that revision.
func TestARestartWhereNothingServes(t *testing.T) {
	t.Parallel()
	failed := func(compute.Release) compute.Status {
		return compute.Status{State: compute.Failed, Reason: compute.ReasonStartFailed, Message: "the agent exited with code 7"}
	}
	for name, c := range map[string]struct {
		of     func(*machine) *fake
		end    func(*testing.T, *server, deployment.Deployment)
		kind   event.Type
		reason string
		words  string
	}{
		"it does not become healthy": {func(m *machine) *fake { return &m.target.fake }, func(_ *testing.T, s *server, _ deployment.Deployment) {
			s.target.mu.Lock()
			s.target.health = failed
			s.target.mu.Unlock()
			s.target.finish()
		}, event.DeploymentRestartFailed, compute.ReasonStartFailed, "No agent serves after restart"},
		"its build fails": {func(m *machine) *fake { return &m.builder.fake }, func(_ *testing.T, s *server, _ deployment.Deployment) {
			s.builder.mu.Lock()
			s.builder.outcome = func(build.Spec) build.Result {
				return build.Result{State: build.Failed, Reason: build.ReasonBuildCommandFailed, Message: "no"}
			}
			s.builder.mu.Unlock()
			s.builder.finish()
		}, event.DeploymentRestartFailed, build.ReasonBuildCommandFailed, "No agent serves after restart"},
		"it is cancelled": {func(m *machine) *fake { return &m.target.fake }, func(t *testing.T, s *server, d deployment.Deployment) {
			if _, err := s.deployments.Cancel(t.Context(), d.Revision(d.Latest)); err != nil {
				t.Error(err)
			}
		}, event.DeploymentRestartFailed, revision.ReasonCancelled, "No agent serves after restart"},
		"it is built and deployed": {func(m *machine) *fake { return &m.builder.fake }, func(_ *testing.T, s *server, _ deployment.Deployment) {
			s.builder.finish()
		}, event.DeploymentRestarted, "", "were replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.patience = 10 * time.Millisecond
			s := m.start(t, m.table)
			of := c.of(m)
			of.hold(true)
			waiting := awaited(of)
			awaits := make(chan struct{}, 1)
			s.around = func(ctx context.Context, step string, perform performFunc) (json.RawMessage, error) {
				answer, err := perform(ctx)
				if step == "AwaitRestart" {
					select {
					case awaits <- struct{}{}:
					default:
					}
				}
				return answer, err
			}
			d := s.create(t, fromGit("weather"))
			<-waiting
			restart, err := s.deployments.Restart(t.Context(), d.Ref)
			check.Must(t, err)
			<-awaits
			c.end(t, s, d)
			s.awaitEnd(t, workflow.Restart, restart.ID)
			s.settle(t, d.Ref)
			found := s.ofRestarts(t, d.Ref)
			if len(found) != 1 || found[0].Type != c.kind || found[0].Reason != c.reason || found[0].Revision != d.Latest || !strings.Contains(found[0].Message, c.words) {
				t.Errorf("events of restarts: got %+v, want one %s %s of %s: %s", found, c.kind, c.reason, d.Latest, c.words)
			}
		})
	}
}

// TestARestartDoesNotWaitForARevisionThatCameAfterIt and has not become healthy: that revision
// has the new values anyway.
func TestARestartDoesNotWaitForARevisionThatCameAfterIt(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.patience = 10 * time.Millisecond
	m.target.health = func(release compute.Release) compute.Status {
		if release.Env["PLATFORM_FRAMEWORK_GIT_REF"] == "slow" {
			return compute.Status{State: compute.Progressing}
		}
		return compute.Status{State: compute.Healthy}
	}
	s := m.start(t, m.table)
	first := s.settle(t, s.create(t, fromGit("weather")).Ref)
	deploying := make(chan struct{}, 1)
	m.target.entered = func(method, of string) {
		if method == "Await" && of != first.Active {
			select {
			case deploying <- struct{}{}:
			default:
			}
		}
	}
	var once sync.Once
	s.around = func(ctx context.Context, step string, perform performFunc) (json.RawMessage, error) {
		if step == "AwaitRestart" {
			once.Do(func() {
				s.patch(t, first.Ref, again("slow"))
				<-deploying
			})
		}
		return perform(ctx)
	}
	restart := s.restart(t, first.Ref)
	s.wantTold(t, first, restart, event.DeploymentRestarted, "")
	d := s.get(t, first.Ref)
	s.target.become(d.Latest, compute.Status{State: compute.Healthy})
	s.settle(t, d.Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
}
