package rollout_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAServerThatIsKilledGoesOn kills the server after each write of a life of two revisions,
// the second with a canary. In one case the builder and the target lose their data, as on one
// machine; in the other case both live on, as elsewhere. The next server carries everything to
// its end.
func TestAServerThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("lost=%v", lost), func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n += check.Every(4) {
				m := newMachine(t)
				if !dies(t, m, n, live) {
					if n < 20 {
						t.Errorf("the whole life took %d writes only", n-1)
					}
					return
				}
				if lost {
					m.builder.lose()
					m.target.lose()
				}
				s := m.start(t, m.table)
				s.minded(steady)
				s.resume(t)
				ref := s.live(t)
				s.wantAtRest(t, ref, revision.Deployed)
				s.wantTried(t, s.get(t, ref))
				s.kill()
				if t.Failed() {
					t.Fatalf("after the death at write %d", n)
				}
			}
		})
	}
}

// dies runs a process that dies after its nth write, and reports whether it died before it had
// finished.
func dies(t *testing.T, m *machine, n int, run func(*testing.T, *server)) bool {
	t.Helper()
	mortal := newMortal(m.table)
	mortal.dieAtWrite(n)
	s := m.start(t, mortal)
	through := make(chan struct{})
	go func() {
		defer close(through)
		run(t, s)
	}()
	select {
	case <-mortal.died:
		mortal.bury(s)
		<-through
		return true
	case <-through:
		s.kill()
		return mortal.isDead()
	}
}

// live makes two revisions, as far as the process lives.
func live(t *testing.T, s *server) {
	ctx := context.WithoutCancel(t.Context())
	s.minded(steady)
	d, err := s.deployments.Create(ctx, tried())
	if err != nil {
		return
	}
	if !s.carried(ctx, d.Latest) {
		return
	}
	if d, err = s.deployments.Patch(ctx, d.Ref, again("dev")); err != nil {
		return
	}
	s.carried(ctx, d.Latest)
}

// carried waits for the end of a rollout; false when the process has died.
func (s *server) carried(ctx context.Context, revisionID string) bool {
	execution, err := s.workflow.Describe(ctx, workflow.Rollout, revisionID)
	if err != nil || execution.Status != workflow.Running {
		return err == nil
	}
	select {
	case <-s.end(workflow.Rollout, revisionID):
		return true
	case <-s.killed:
		return false
	}
}

// live does the remaining part of the life of two revisions.
func (s *server) live(t *testing.T) deployment.Ref {
	t.Helper()
	page, err := s.deployments.Search(t.Context(), workspace, deployment.Filter{}, record.Window{Limit: 10})
	found := page.Items
	if err != nil || len(found) > 1 {
		t.Fatalf("deployments: got %v (%v), want one at most", found, err)
	}
	if len(found) == 0 {
		found = []deployment.Deployment{s.create(t, tried())}
	}
	ref := found[0].Ref
	s.settle(t, ref)
	if len(s.revisions(t, ref)) == 1 {
		s.patch(t, ref, again("dev"))
		s.settle(t, ref)
	}
	return ref
}

// TestAServerThatIsKilledWhileARevisionFails kills the server after each write of a rollout
// whose canary ends with a fault of the platform. The next server carries the rollout to that
// end, and leaves the first revision as it was.
func TestAServerThatIsKilledWhileARevisionFails(t *testing.T) {
	t.Parallel()
	for n := 1; ; n += check.Every(4) {
		m := newMachine(t)
		first := m.start(t, m.table)
		first.minded(steady)
		d := first.settle(t, first.create(t, tried()).Ref)
		first.kill()
		died := dies(t, m, n, func(t *testing.T, s *server) {
			ctx := context.WithoutCancel(t.Context())
			s.minded(steady)
			s.around = failing("Canary", 1<<40, true)
			if next, err := s.deployments.Patch(ctx, d.Ref, again("dev")); err == nil {
				s.carried(ctx, next.Latest)
			}
		})
		s := m.start(t, m.table)
		s.minded(steady)
		s.around = failing("Canary", 1<<40, true)
		s.resume(t)
		if len(s.revisions(t, d.Ref)) == 1 {
			s.patch(t, d.Ref, again("dev"))
		}
		now := s.settle(t, d.Ref)
		s.wantAtRest(t, d.Ref, revision.DeployFailed)
		if r := s.revision(t, d.Ref, now.Latest); r.Reason != compute.ReasonInternal || now.Active != d.Active {
			t.Errorf("it failed with %s: %s", r.Reason, r.Message)
		}
		s.kill()
		if t.Failed() {
			t.Fatalf("after the death at write %d", n)
		}
		if !died {
			if n < 10 {
				t.Errorf("the whole rollout took %d writes only", n-1)
			}
			return
		}
	}
}

// TestARolloutSurvivesAnyNumberOfKills kills server after server in the same step, before the step
// did anything or after it did everything. Every other server dies with one of its first writes, in
// its recovery.
func TestARolloutSurvivesAnyNumberOfKills(t *testing.T) {
	t.Parallel()
	for _, step := range rolloutSteps {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s after=%v", step.name, after), func(t *testing.T) {
				t.Parallel()
				m := newMachine(t)
				first := m.start(t, m.table)
				first.minded(steady)
				d := first.settle(t, first.create(t, tried()).Ref)
				first.kill()
				for death := range 6 {
					mortal := newMortal(m.table)
					if death%2 == 1 {
						mortal.dieAtWrite(1 + death/2)
					}
					s := m.start(t, mortal)
					s.minded(steady)
					s.rollout.Trials = s.workflow
					s.around = dying(t, mortal, step.name, after)
					resumed := make(chan struct{})
					go func() {
						defer close(resumed)
						if death == 0 {
							_, _ = s.deployments.Patch(context.Background(), d.Ref, again("dev"))
							return
						}
						_, _ = s.rollout.Restore(context.Background()), s.workflow.Resume(context.Background())
					}()
					<-mortal.died
					mortal.bury(s)
					<-resumed
					m.builder.lose()
					m.target.lose()
				}
				s := m.start(t, m.table)
				s.minded(steady)
				s.rollout.Trials = s.workflow
				s.resume(t)
				d = s.settle(t, d.Ref)
				s.wantAtRest(t, d.Ref, revision.Deployed)
				s.wantTried(t, d)
				if n := len(s.revisions(t, d.Ref)); n != 2 {
					t.Errorf("there are %d revisions, want 2", n)
				}
			})
		}
	}
}

// dying ends the process in a step, before or after it is performed. The rollout must not fail.
func dying(t *testing.T, m *mortal, name string, after bool) func(context.Context, string, performFunc) (json.RawMessage, error) {
	return func(ctx context.Context, step string, perform performFunc) (json.RawMessage, error) {
		switch {
		case step == "Fail":
			t.Errorf("the rollout fails")
		case step != name:
			return perform(ctx)
		case after:
			if answer, err := perform(ctx); err != nil {
				return answer, err
			}
		}
		m.die()
		return nil, m.hang()
	}
}

// TestATeardownThatIsKilledGoesOn kills the server after each write of a teardown, without and with
// a recovery window.
func TestATeardownThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	for _, window := range []time.Duration{0, moment} {
		t.Run(fmt.Sprintf("window=%v", window), func(t *testing.T) {
			t.Parallel()
			for n := 1; killsTeardown(t, window, n); n += check.Every(4) {
				if t.Failed() {
					t.Fatalf("after the death at write %d", n)
				}
			}
		})
	}
}

// killsTeardown kills the server after the nth write of a teardown, and reports whether there
// was such a write.
func killsTeardown(t *testing.T, window time.Duration, n int) bool {
	t.Helper()
	m := newMachine(t)
	m.now = m.engine
	first := m.start(t, m.table)
	d := first.settle(t, first.create(t, fromGit("weather")).Ref)
	first.fillWithThreads(t, d.Ref, 2)
	first.kill()
	died := dies(t, m, n, func(t *testing.T, s *server) {
		ctx := context.WithoutCancel(t.Context())
		if s.deployments.Delete(ctx, d.Ref, deployment.Deletion{Window: window}) != nil {
			return
		}
		select {
		case <-s.end(workflow.Teardown, d.Deployment):
		case <-s.killed:
		}
	})
	s := m.start(t, m.table)
	s.resume(t)
	s.awaitEnd(t, workflow.Teardown, d.Deployment)
	s.wantGone(t, d)
	s.kill()
	return died
}

// TestABuildThatWasLostIsStartedAgain ends the server while the builder works.
func TestABuildThatWasLostIsStartedAgain(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.builder.hold(true)
	first := m.start(t, m.table)
	waiting := awaited(&m.builder.fake)
	d := first.create(t, fromGit("weather"))
	<-waiting
	first.kill()
	m.builder.lose()
	m.builder.hold(false)
	m.builder.outcome = func(spec build.Spec) build.Result {
		result := built(spec)
		result.CommitSHA = "built-again"
		return result
	}
	s := m.start(t, m.table)
	s.resume(t)
	s.settle(t, d.Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
	if got := s.get(t, d.Ref).CommitSHA; got != "built-again" {
		t.Errorf("got commit %s", got)
	}
}

// TestAReleaseThatWasLostIsStartedAgain loses the release in the middle of the wait for its
// health, while the server lives on.
func TestAReleaseThatWasLostIsStartedAgain(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.target.hold(true)
	s := m.start(t, m.table)
	waiting := awaited(&m.target.fake)
	d := s.create(t, fromGit("weather"))
	<-waiting
	m.target.hold(false)
	m.target.lose()
	s.settle(t, d.Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
}

// awaited returns a channel that tells when a caller waits for the work.
func awaited(f *fake) <-chan struct{} {
	waiting := make(chan struct{}, 64)
	f.entered = func(method, _ string) {
		if method == "Await" {
			waiting <- struct{}{}
		}
	}
	return waiting
}

// TestRestoreStartsWhatShouldRunOnly has one release of each kind.
func TestRestoreStartsWhatShouldRunOnly(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	first := m.start(t, m.table)
	serving := first.settle(t, first.create(t, fromGit("serving")).Ref)
	replaced := first.settle(t, first.create(t, fromGit("replaced")).Ref)
	m.target.fail("Remove", -1)
	first.patch(t, replaced.Ref, again("dev"))
	replaced = first.settle(t, replaced.Ref)
	m.target.fail("Remove", 0)
	deleted := first.settle(t, first.create(t, fromGit("deleted")).Ref)
	first.kill()
	stopped := m.start(t, m.table)
	stopped.kill()
	check.Must(t, stopped.deployments.Delete(t.Context(), deleted.Ref, deployment.Deletion{}))
	tokens := map[string]string{}
	for _, id := range []string{serving.Active, replaced.Active} {
		release, _ := m.target.release(id)
		tokens[id] = release.Token
	}
	m.target.lose()
	s := m.start(t, m.table)
	check.Must(t, s.rollout.Restore(t.Context()))
	want := []string{serving.Active, replaced.Active}
	slices.Sort(want)
	if got := m.target.left(); !slices.Equal(got, want) {
		t.Errorf("running releases: got %v, want %v", got, want)
	}
	for id, token := range tokens {
		if release, _ := m.target.release(id); release.Token != token {
			t.Errorf("release %s has another token", id)
		}
	}
	listed, err := s.deployments.Releases(t.Context())
	if err != nil || len(listed) != 2 {
		t.Errorf("releases to keep running: got %v (%v), want the two", listed, err)
	}
}
