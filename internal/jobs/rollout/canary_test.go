package rollout_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/test/check"
)

// tried is a request for a deployment whose revisions are canaries first.
func tried() deployment.NewDeployment {
	request := fromGit("weather")
	request.CanaryPercent = new(50)
	return request
}

// wantTried checks that the newest revision was a canary before it was promoted, and that the
// first revision was not.
func (s *server) wantTried(t *testing.T, d deployment.Deployment) {
	t.Helper()
	all := s.revisions(t, d.Ref)
	if _, ok := all[0].CanarySince(); !ok || all[0].Reason != "" || all[0].Message != "" {
		t.Errorf("the newest revision was a canary: %v, and says %q", ok, all[0].Message)
	}
	if _, ok := all[len(all)-1].CanarySince(); ok {
		t.Error("the first revision was a canary")
	}
}

// served counts the threads that each revision serves.
func (s *server) served(t *testing.T, d deployment.Deployment) map[string]int {
	t.Helper()
	by := map[string]int{}
	for n := range 200 {
		release, err := s.deployments.Serving(t.Context(), d.Workspace, d.Deployment, fmt.Sprintf("0197a000-0000-7000-8000-%012x", n))
		check.Must(t, err)
		by[release.Revision]++
	}
	return by
}

// onTrial returns a server with a second revision that is a canary, whose time does not pass.
func onTrial(t *testing.T) (s *server, minded *minder, first, d deployment.Deployment) {
	t.Helper()
	m := newMachine(t)
	m.patience = time.Hour
	s = m.start(t, m.table)
	minded = s.minded(steady)
	first = s.settle(t, s.create(t, tried()).Ref)
	minded.waited = make(chan struct{}, 100)
	s.patch(t, first.Ref, again("dev"))
	<-minded.waited
	return s, minded, first, s.get(t, first.Ref)
}

// TestACanaryServesItsShare, says that it is one, and is promoted when its time is over.
func TestACanaryServesItsShare(t *testing.T) {
	t.Parallel()
	type seen struct {
		deployment deployment.Deployment
		canary     revision.Revision
		served     map[string]int
	}
	looked := make(chan seen, 10)
	var s *server
	var ref deployment.Ref
	s, _ = mind(t, func(compute.Release) string {
		d := s.get(t, ref)
		looked <- seen{d, s.revision(t, ref, d.Latest), s.served(t, d)}
		return ""
	})
	first := s.settle(t, s.create(t, tried()).Ref)
	ref = first.Ref
	s.patch(t, ref, again("dev"))
	d := s.settle(t, ref)
	during := <-looked
	if r := during.canary; r.Status != revision.Deploying || r.Reason != revision.ReasonCanary || !strings.Contains(r.Message, "50 %") {
		t.Errorf("the canary is %s (%s): %s", r.Status, r.Reason, r.Message)
	}
	if got := during.served; len(got) != 2 || got[first.Active] < 60 || got[d.Latest] < 60 {
		t.Errorf("the threads are served by %v, want about as many by either revision", got)
	}
	if during.deployment.Active != first.Active {
		t.Errorf("%s is active during the canary", during.deployment.Active)
	}
	s.wantAtRest(t, ref, revision.Deployed)
	s.wantTried(t, d)
	if got := s.served(t, d); len(got) != 1 || got[d.Latest] == 0 {
		t.Errorf("after the promotion the threads are served by %v", got)
	}
	told := s.told(t, d)
	want := []string{"revision.deploying DEPLOYING ", "revision.canary DEPLOYING CANARY", "revision.deployed DEPLOYED "}
	if diff := cmp.Diff(want, told[len(told)-3:]); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// told returns the events of a deployment: types, statuses and reasons.
func (s *server) told(t *testing.T, d deployment.Deployment) (types []string) {
	t.Helper()
	events, err := s.deployments.Events().Deployment(d.Workspace, d.Deployment).Read(t.Context(), "", 1000)
	check.Must(t, err)
	for _, e := range events {
		types = append(types, fmt.Sprintf("%s %s %s", e.Type, e.Status, e.Reason))
	}
	return types
}

// TestACanaryThatDoesNotStayHealthy fails, and the active release serves all threads again.
func TestACanaryThatDoesNotStayHealthy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		relapses func(*server, compute.Release) string
		want     string
	}{
		"it ends time and again": {func(_ *server, release compute.Release) string { return badRelapses(release) }, "as a canary. It ended 3 times."},
		"it has failed": {func(s *server, release compute.Release) string {
			s.target.become(release.Revision, compute.Status{State: compute.Failed, Reason: "R", Message: "There is no room."})
			return ""
		}, "as a canary. There is no room."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s *server
			s, _ = mind(t, func(release compute.Release) string { return c.relapses(s, release) })
			first := s.settle(t, s.create(t, tried()).Ref)
			removed := make(chan map[string]int, 10)
			s.target.mu.Lock()
			s.target.entered = func(method, _ string) {
				if method == "Remove" {
					removed <- s.served(t, first)
				}
			}
			s.target.mu.Unlock()
			s.patch(t, first.Ref, again(badRef))
			d := s.settle(t, first.Ref)
			if got := <-removed; len(got) != 1 || got[first.Active] == 0 {
				t.Errorf("when the canary is removed, the threads are served by %v, want all by %s", got, first.Active)
			}
			s.wantAtRest(t, d.Ref, revision.DeployFailed)
			if r := s.revision(t, d.Ref, d.Latest); r.Reason != revision.ReasonCanaryFailed || !strings.Contains(r.Message, c.want) {
				t.Errorf("it failed with %s: %s", r.Reason, r.Message)
			}
			if got := s.served(t, d); len(got) != 1 || got[first.Active] == 0 {
				t.Errorf("the threads are served by %v, want all by %s", got, first.Active)
			}
		})
	}
}

// TestWhatEndsACanaryEarly checks that the cause takes effect at once, and that the next
// revision follows.
func TestWhatEndsACanaryEarly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end    func(*testing.T, *server, revision.Ref) (revision.Revision, error)
		status revision.Status
	}{
		"a promotion": {func(t *testing.T, s *server, ref revision.Ref) (revision.Revision, error) {
			return s.deployments.PromoteCanary(t.Context(), ref)
		}, revision.Deployed},
		"a cancel": {func(t *testing.T, s *server, ref revision.Ref) (revision.Revision, error) {
			return s.deployments.Cancel(t.Context(), ref)
		}, revision.Interrupted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, minded, first, d := onTrial(t)
			r, err := c.end(t, s, d.Revision(d.Latest))
			if err != nil || r.Status != c.status || r.Reason == revision.ReasonCanary {
				t.Fatalf("got %s %s (%v), want %s", r.Status, r.Reason, err, c.status)
			}
			serves, ended := d.Latest, first.Active
			if c.status == revision.Interrupted {
				serves, ended = ended, serves
			}
			if got := s.served(t, d); len(got) != 1 || got[serves] == 0 {
				t.Errorf("the threads are served by %v, want all by %s", got, serves)
			}
			d = s.settle(t, d.Ref)
			if got := s.target.left(); len(got) != 1 || got[0] != serves || d.Active != serves || d.Retiring != "" {
				t.Errorf("%v run, and %s is active, want %s only, and not %s", got, d.Active, serves, ended)
			}
			if _, err := s.deployments.PromoteCanary(t.Context(), d.Revision(d.Latest)); !fault.Is(err, fault.Conflict) {
				t.Errorf("a promotion after the end: got %v, want a fault of kind conflict", err)
			}
			minded.waited = nil
			s.patch(t, d.Ref, again("next"))
			s.settle(t, d.Ref)
			s.wantAtRest(t, d.Ref, revision.Deployed)
		})
	}
}

// TestAQueuedRevisionFollowsACanary, but not before the end of the canary.
func TestAQueuedRevisionFollowsACanary(t *testing.T) {
	t.Parallel()
	s, minded, _, d := onTrial(t)
	canary := d.Latest
	s.patch(t, d.Ref, again("next"))
	next := s.get(t, d.Ref)
	if r := s.revision(t, d.Ref, next.Latest); r.Status != revision.Queued || next.Slot != canary {
		t.Errorf("the next revision is %s", r.Status)
	}
	if _, err := s.deployments.PromoteCanary(t.Context(), d.Revision(next.Latest)); !fault.Is(err, fault.Conflict) {
		t.Errorf("the promotion of one that is queued: got %v, want a fault of kind conflict", err)
	}
	if _, err := s.deployments.PromoteCanary(t.Context(), d.Revision(canary)); err != nil {
		t.Fatal(err)
	}
	<-minded.waited
	if got := s.get(t, d.Ref); got.Active != canary || got.Slot != next.Latest || got.Canary != 50 {
		t.Errorf("got %+v, want the next one to be a canary", got)
	}
	if _, err := s.deployments.PromoteCanary(t.Context(), d.Revision(next.Latest)); err != nil {
		t.Fatal(err)
	}
	s.settle(t, d.Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
}

// TestWhatIsNoCanary checks that such a revision is promoted at once.
func TestWhatIsNoCanary(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		percent *int
		revise  func(*testing.T, *server, deployment.Deployment)
	}{
		"nobody asked for it": {nil, nil},
		"it is turned off":    {new(0), nil},
		"what serves has failed": {new(50), func(t *testing.T, s *server, d deployment.Deployment) {
			s.target.become(d.Active, compute.Status{State: compute.Failed})
			s.patch(t, d.Ref, again("dev"))
		}},
		"what serves is gone": {new(50), func(t *testing.T, s *server, d deployment.Deployment) {
			s.target.become(d.Active, compute.Status{State: compute.Absent})
			s.patch(t, d.Ref, again("dev"))
		}},
		"it was deployed before": {new(50), func(t *testing.T, s *server, d deployment.Deployment) {
			if _, err := s.deployments.Redeploy(t.Context(), d.Revision(d.Active), nil); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, minded := mind(t, steady)
			request := fromGit("weather")
			request.CanaryPercent = c.percent
			d := s.settle(t, s.create(t, request).Ref)
			if c.revise == nil {
				s.patch(t, d.Ref, again("dev"))
			} else {
				c.revise(t, s, d)
			}
			d = s.settle(t, d.Ref)
			s.wantAtRest(t, d.Ref, revision.Deployed)
			if _, ok := s.revision(t, d.Ref, d.Latest).CanarySince(); ok || minded.asked.Load() > 0 || len(s.revisions(t, d.Ref)) != 2 {
				t.Error("it was a canary")
			}
		})
	}
}

// TestACanaryThatIsLostIsStartedAgain, and continues for the rest of its time.
func TestACanaryThatIsLostIsStartedAgain(t *testing.T) {
	t.Parallel()
	var s *server
	var minded *minder
	s, minded = mind(t, func(release compute.Release) string {
		if minded.asked.Load() == 1 {
			s.target.lose()
			minded.later.Pass(-time.Hour) // no time passes
		}
		return ""
	})
	d := s.settle(t, s.create(t, tried()).Ref)
	s.patch(t, d.Ref, again("dev"))
	d = s.settle(t, d.Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
	s.wantTried(t, d)
	if minded.asked.Load() != 2 {
		t.Errorf("it was minded %d times, want 2", minded.asked.Load())
	}
}

// TestACanaryWhoseWorkflowIsLost: reconcile ends the canary, and the active release serves all
// threads again.
func TestACanaryWhoseWorkflowIsLost(t *testing.T) {
	t.Parallel()
	s, _, first, d := onTrial(t)
	check.Must(t, s.workflow.Stop(t.Context(), "rollout", d.Latest, "lost"))
	s.rescue(t)
	s.wantAtRest(t, d.Ref, revision.DeployFailed)
	if r := s.revision(t, d.Ref, d.Latest); r.Reason != compute.ReasonInternal {
		t.Errorf("it failed with %s: %s", r.Reason, r.Message)
	}
	if got := s.served(t, d); len(got) != 1 || got[first.Active] == 0 {
		t.Errorf("the threads are served by %v, want all by %s", got, first.Active)
	}
}

// TestACanaryThatIsNotHealthyAtItsEnd: the canary is promoted when it is healthy again.
func TestACanaryThatIsNotHealthyAtItsEnd(t *testing.T) {
	t.Parallel()
	var s *server
	var minded *minder
	s, minded = mind(t, func(release compute.Release) string {
		if minded.asked.Load() == 1 {
			s.target.become(release.Revision, compute.Status{State: compute.Progressing})
		} else {
			s.target.become(release.Revision, compute.Status{State: compute.Healthy})
		}
		return ""
	})
	d := s.settle(t, s.create(t, tried()).Ref)
	s.patch(t, d.Ref, again("dev"))
	d = s.settle(t, d.Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
	s.wantTried(t, d)
	if minded.asked.Load() != 2 {
		t.Errorf("it was minded %d times, want 2", minded.asked.Load())
	}
}
