package rollout_test

import (
	"context"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/test/check"
)

// starting returns a deployment with a canary whose active release is only starting, like a
// release that is scaled out or restarted.
func starting(t *testing.T, patience time.Duration, readiness *int) (*server, *minder, deployment.Deployment) {
	t.Helper()
	m := newMachine(t)
	m.patience = patience
	s := m.start(t, m.table)
	minded := s.minded(steady)
	request := tried()
	request.ReadinessTimeout = readiness
	d := s.settle(t, s.create(t, request).Ref)
	s.target.become(d.Active, compute.Status{State: compute.Progressing})
	return s, minded, d
}

// whenLookedAt calls look each time that a release is looked at.
func (s *server) whenLookedAt(revisionID string, look func()) {
	s.target.mu.Lock()
	defer s.target.mu.Unlock()
	s.target.entered = func(method, revision string) {
		if method == "Await" && revision == revisionID {
			look()
		}
	}
}

// TestACanaryWaitsForTheReleaseThatServes: the canary does not get all threads because the
// serving release is starting for a moment.
func TestACanaryWaitsForTheReleaseThatServes(t *testing.T) {
	t.Parallel()
	s, _, d := starting(t, time.Millisecond, nil)
	looks := 0
	active := d.Active
	s.whenLookedAt(active, func() {
		if looks++; looks == 3 {
			s.target.become(active, compute.Status{State: compute.Healthy})
		}
	})
	s.patch(t, d.Ref, again("dev"))
	d = s.settle(t, d.Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
	s.wantTried(t, d)
}

// TestACanaryIsCancelledWhileItWaits for the release that serves.
func TestACanaryIsCancelledWhileItWaits(t *testing.T) {
	t.Parallel()
	s, _, d := starting(t, time.Hour, nil)
	looked := make(chan struct{}, 100)
	s.whenLookedAt(d.Active, func() { looked <- struct{}{} })
	next := s.patch(t, d.Ref, again("dev"))
	<-looked
	if _, err := s.deployments.Cancel(t.Context(), d.Revision(next.Latest)); err != nil {
		t.Fatal(err)
	}
	s.settle(t, d.Ref)
	s.wantAtRest(t, d.Ref, revision.Interrupted)
}

// TestACanaryThatEndsWhileItIsLookedAt ends at once, and not when the step's patience is over.
func TestACanaryThatEndsWhileItIsLookedAt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(*server, context.Context, revision.Ref) (revision.Revision, error)
		want revision.Status
	}{
		"by a promotion": {func(s *server, ctx context.Context, ref revision.Ref) (revision.Revision, error) {
			return s.deployments.PromoteCanary(ctx, ref)
		}, revision.Deployed},
		"by a cancel": {func(s *server, ctx context.Context, ref revision.Ref) (revision.Revision, error) {
			return s.deployments.Cancel(ctx, ref)
		}, revision.Interrupted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.patience = time.Hour
			s := m.start(t, m.table)
			minded := s.minded(steady)
			first := s.settle(t, s.create(t, tried()).Ref)
			minded.waited = make(chan struct{}, 100)
			ended := false
			s.target.mu.Lock()
			s.target.entered = func(method, id string) {
				if d := s.get(t, first.Ref); method == "Await" && id == d.Latest && d.Canary > 0 && !ended {
					ended = true
					_, err := c.end(s, t.Context(), d.Revision(id))
					check.Must(t, err)
				}
			}
			s.target.mu.Unlock()
			s.patch(t, first.Ref, again("dev"))
			s.settle(t, first.Ref)
			s.wantAtRest(t, first.Ref, c.want)
		})
	}
}

// TestACanaryDoesNotWaitForever for a release that serves and does not become healthy: the new
// release may repair it.
func TestACanaryDoesNotWaitForever(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		readiness *int
		looks     int
	}{
		"the deployment says how long":    {new(60), 3},
		"nobody says how long":            {nil, 21},
		"it says that it may take longer": {new(1200), 41},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, minded, d := starting(t, time.Millisecond, c.readiness)
			looks := 0
			s.whenLookedAt(d.Active, func() {
				looks++
				minded.later.Pass(30 * time.Second)
			})
			s.patch(t, d.Ref, again("dev"))
			d = s.settle(t, d.Ref)
			s.wantAtRest(t, d.Ref, revision.Deployed)
			if _, ok := s.revision(t, d.Ref, d.Latest).CanarySince(); ok || looks > c.looks || looks < c.looks-1 {
				t.Errorf("it was a canary: %v, after %d looks at the release that serves, want %d", ok, looks, c.looks)
			}
		})
	}
}

// TestNoReleaseIsForgottenBetweenTwoCanaries promotes a second canary by request before the
// release that the first canary has replaced could be removed.
func TestNoReleaseIsForgottenBetweenTwoCanaries(t *testing.T) {
	t.Parallel()
	s, minded, first, d := onTrial(t)
	s.target.fail("Remove", 8) // more than the attempts of one step
	if _, err := s.deployments.PromoteCanary(t.Context(), d.Revision(d.Latest)); err != nil {
		t.Fatal(err)
	}
	d = s.settle(t, d.Ref)
	if d.Retiring != first.Active || d.Busy {
		t.Fatalf("got %+v, want %s to be left", d, first.Active)
	}
	s.patch(t, d.Ref, again("next"))
	<-minded.waited
	d = s.get(t, d.Ref)
	if _, err := s.deployments.PromoteCanary(t.Context(), d.Revision(d.Latest)); err != nil {
		t.Fatal(err)
	}
	s.settle(t, d.Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
}

// TestACanaryThatNothingRunsAnyMore fails on a server that has no target for it.
func TestACanaryThatNothingRunsAnyMore(t *testing.T) {
	t.Parallel()
	s, _, first, d := onTrial(t)
	s.kill()
	s.sources = nil
	next := s.start(t, s.table)
	next.resume(t)
	d = next.settle(t, d.Ref)
	r := next.revision(t, d.Ref, d.Latest)
	if r.Status != revision.DeployFailed || r.Reason != compute.ReasonNoContainerEngine || d.Canary != 0 || d.Active != first.Active {
		t.Errorf("it is %s (%s: %s), and %s is active", r.Status, r.Reason, r.Message, d.Active)
	}
}
