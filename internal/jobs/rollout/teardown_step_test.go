package rollout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// teardownSteps calls each for the steps of a teardown, with a recovery window and, except for
// the beginning of the purge, without a recovery window.
func teardownSteps(each func(step string, window time.Duration)) {
	for _, step := range []string{"StopReleases", "BeginPurge", "EraseThreads", "EraseDeployment"} {
		each(step, moment)
		if step != "BeginPurge" {
			each(step, 0)
		}
	}
}

// moment is a recovery window that is over, for a machine in a hurry, when it has stopped the
// releases.
const moment = time.Second

// torn returns a deployment whose teardown takes several pages, at a server that carries out
// its steps as given from then on.
func torn(t *testing.T, step string, n int64, after bool) (*server, deployment.Deployment) {
	t.Helper()
	m := newMachine(t)
	m.now = m.engine
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	s.patch(t, d.Ref, again("dev"))
	s.settle(t, d.Ref)
	s.fillWithThreads(t, d.Ref, 50)
	s.around = failing(step, n, after)
	return s, d
}

// TestAStepOfATeardownThatFailsIsRepeated lets each step fail some times, before it did anything,
// and after it did everything.
func TestAStepOfATeardownThatFailsIsRepeated(t *testing.T) {
	t.Parallel()
	teardownSteps(func(step string, window time.Duration) {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s window=%v after=%v", step, window, after), func(t *testing.T) {
				t.Parallel()
				s, d := torn(t, step, 3, after)
				s.deleteWithin(t, d, window)
				s.awaitEnd(t, workflow.Teardown, d.Deployment)
				if got := s.executionStatus(t, workflow.Teardown, d.Deployment); got != workflow.Succeeded {
					t.Errorf("the teardown is %s", got)
				}
				s.wantGone(t, d)
			})
		}
	})
}

// TestAStepOfATeardownThatAlwaysFails leaves the deployment AWAITING_DELETE, and keeps the
// data that its step would have erased; reconcile finishes the teardown.
func TestAStepOfATeardownThatAlwaysFails(t *testing.T) {
	t.Parallel()
	const always = 1 << 40
	teardownSteps(func(step string, window time.Duration) {
		t.Run(fmt.Sprintf("%s window=%v", step, window), func(t *testing.T) {
			t.Parallel()
			s, d := torn(t, step, always, false)
			s.deleteWithin(t, d, window)
			s.awaitEnd(t, workflow.Teardown, d.Deployment)
			if got := s.executionStatus(t, workflow.Teardown, d.Deployment); got != workflow.Failed {
				t.Errorf("the teardown is %s, want FAILED", got)
			}
			if got := s.get(t, d.Ref).Status; got != deployment.AwaitingDelete {
				t.Errorf("meanwhile it is %s", got)
			}
			s.rescue(t)
			s.wantGone(t, d)
		})
	})
}

// TestAStepOfATeardownWhoseAnswerIsAlwaysLost has done its work: the data that it erased is
// gone, and reconcile erases the rest.
func TestAStepOfATeardownWhoseAnswerIsAlwaysLost(t *testing.T) {
	t.Parallel()
	const always = 1 << 40
	teardownSteps(func(step string, window time.Duration) {
		t.Run(fmt.Sprintf("%s window=%v", step, window), func(t *testing.T) {
			t.Parallel()
			s, d := torn(t, step, always, true)
			s.deleteWithin(t, d, window)
			s.awaitEnd(t, workflow.Teardown, d.Deployment)
			if got := s.executionStatus(t, workflow.Teardown, d.Deployment); got != workflow.Failed {
				t.Errorf("the teardown is %s, want FAILED", got)
			}
			_, err := s.deployments.Get(t.Context(), d.Ref)
			if gone := fault.Is(err, fault.NotFound); gone != (step == "EraseDeployment") {
				t.Errorf("before reconcile comes: %v", err)
			}
			s.rescue(t)
			s.wantGone(t, d)
			s.rescue(t) // there is nothing left to do
		})
	})
}
