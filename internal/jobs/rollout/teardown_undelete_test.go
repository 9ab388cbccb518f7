package rollout_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
)

// longestWindow is the longest recovery window that the interface accepts.
const longestWindow = 30 * 24 * time.Hour

// performed returns a channel that is closed when the server has carried out a step, from now
// on.
func (s *server) performed(step string) <-chan struct{} {
	through := make(chan struct{})
	var once sync.Once
	s.around = func(ctx context.Context, name string, perform func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
		answer, err := perform(ctx)
		if name == step && err == nil {
			once.Do(func() { close(through) })
		}
		return answer, err
	}
	return through
}

func (s *server) undelete(t *testing.T, ref deployment.Ref) deployment.Deployment {
	t.Helper()
	d, err := s.deployments.Undelete(t.Context(), ref, nil)
	check.Must(t, err)
	return d
}

// TestADeploymentIsKeptInItsWindow checks the data while the deployment can be undeleted,
// undeletes it, and lets the next window pass.
func TestADeploymentIsKeptInItsWindow(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	kept := s.fillWithThreads(t, d.Ref, 2)
	stopped := s.performed("StopReleases")
	s.deleteWithin(t, d, longestWindow)
	<-stopped
	if left := s.target.left(); len(left) != 0 {
		t.Errorf("%v still run", left)
	}
	if got := s.get(t, d.Ref); got.Status != deployment.AwaitingDelete || !got.Stopped {
		t.Errorf("it is %+v", got)
	}
	if builds := s.builder.left(); !slices.Equal(builds, []string{d.Active}) || len(s.logs.left()) != 1 {
		t.Errorf("builds %v and logs %v are kept", builds, s.logs.left())
	}
	check.Must(t, s.rollout.Rescue(t.Context(), clock.System().Add(longestWindow-time.Hour)))
	s.rescue(t) // the rescue leaves the deployment alone, too, because its window is not over

	back := s.undelete(t, d.Ref)
	s.settle(t, d.Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
	if live := s.get(t, d.Ref); live.Active != back.Latest || live.Leftover != nil {
		t.Errorf("it lives as %+v", live)
	}
	for _, ref := range kept {
		if _, err := s.threads.Get(t.Context(), thread.Ref{Workspace: ref.Workspace, Deployment: ref.Deployment, Thread: ref.Thread}); err != nil {
			t.Errorf("its thread: %v", err)
		}
	}
	if got := s.executionStatus(t, workflow.Teardown, d.Deployment); got != workflow.Aborted {
		t.Errorf("the teardown is %s", got)
	}
	s.deleteWithin(t, d, 0)
	s.awaitEnd(t, workflow.Teardown, d.Deployment+"-2")
	s.wantGone(t, d)
}

// TestNothingIsErasedInTheWindow performs the steps that erase before the purge has begun.
func TestNothingIsErasedInTheWindow(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	kept := s.fillWithThreads(t, d.Ref, 2)
	stopped := s.performed("StopReleases")
	s.deleteWithin(t, d, longestWindow)
	<-stopped
	for _, step := range []string{"EraseThreads", "EraseDeployment"} {
		input := fmt.Sprintf(`{"step":%q,"workspace_id":%q,"deployment_id":%q,"teardown":1}`, step, d.Workspace, d.Deployment)
		answer, err := s.rollout.Task(t.Context(), json.RawMessage(input))
		if err != nil || string(answer) != `{"next":"Done","due":""}` {
			t.Errorf("%s answers %s (%v)", step, answer, err)
		}
	}
	for _, ref := range kept {
		if _, err := s.threads.Get(t.Context(), ref); err != nil {
			t.Errorf("its thread: %v", err)
		}
	}
	if builds := s.builder.left(); len(builds) != 1 || len(s.revisions(t, d.Ref)) != 1 {
		t.Errorf("builds %v and %d revisions are left", builds, len(s.revisions(t, d.Ref)))
	}
}

// TestAWindowThatEndsEarlier: the purge follows at once.
func TestAWindowThatEndsEarlier(t *testing.T) {
	t.Parallel()
	for _, how := range []deployment.Deletion{{}, {Force: true}} {
		m := newMachine(t)
		s := m.start(t, m.table)
		d := s.settle(t, s.create(t, fromGit("weather")).Ref)
		stopped := s.performed("StopReleases")
		s.deleteWithin(t, d, longestWindow)
		<-stopped
		check.Must(t, s.deployments.Delete(t.Context(), d.Ref, how))
		s.awaitEnd(t, workflow.Teardown, d.Deployment+"-2")
		if got := s.executionStatus(t, workflow.Teardown, d.Deployment); got != workflow.Aborted {
			t.Errorf("the first teardown is %s", got)
		}
		s.wantGone(t, d)
	}
}

// TestALateTeardownDoesNothing performs each step of an earlier teardown when the deployment
// lives again, and when it was deleted again.
func TestALateTeardownDoesNothing(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		m := newMachine(t)
		s := m.start(t, m.table)
		d := s.settle(t, s.create(t, fromGit("weather")).Ref)
		s.fillWithThreads(t, d.Ref, 2)
		s.deleteWithin(t, d, longestWindow)
		s.undelete(t, d.Ref)
		s.settle(t, d.Ref)
		if again {
			stopped := s.performed("StopReleases")
			s.deleteWithin(t, d, longestWindow)
			<-stopped
		}
		builds, releases := s.builder.left(), s.target.left()
		m.now = func() time.Time { return farFuture }
		s.rollout.Now = m.now
		for _, step := range []string{"StopReleases", "BeginPurge", "EraseThreads", "EraseDeployment"} {
			input := fmt.Sprintf(`{"step":%q,"workspace_id":%q,"deployment_id":%q,"teardown":1}`, step, d.Workspace, d.Deployment)
			answer, err := s.rollout.Task(t.Context(), json.RawMessage(input))
			if err != nil || string(answer) != `{"next":"Done","due":""}` {
				t.Errorf("%s answers %s (%v)", step, answer, err)
			}
		}
		if diff := cmp.Diff([][]string{builds, releases}, [][]string{s.builder.left(), s.target.left()}); diff != "" {
			t.Errorf("deleted again %v: builds and releases (-before +after):\n%s", again, diff)
		}
		if got := s.get(t, d.Ref); got.Doomed() || len(s.revisions(t, d.Ref)) != 2 {
			t.Errorf("deleted again %v: it is %+v", again, got)
		}
	}
}

// TestATeardownThatHasGivenUpWaitsForItsWindow: reconcile does the work that the workflow did
// not do. It stops the releases at once, and erases the deployment when the window is over.
func TestATeardownThatHasGivenUpWaitsForItsWindow(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	s.fillWithThreads(t, d.Ref, 2)
	check.Must(t, m.neglected(s).Delete(t.Context(), d.Ref, deployment.Deletion{Window: longestWindow}))
	s.rollout.Workflow = ended{s.workflow, workflow.Failed}
	s.rescue(t)
	if got := s.get(t, d.Ref); !got.Stopped || got.Doomed() || len(s.target.left()) != 0 || len(s.builder.left()) != 1 {
		t.Errorf("in its window it is %+v, %v run, builds are %v", got, s.target.left(), s.builder.left())
	}
	input := fmt.Sprintf(`{"step":"BeginPurge","workspace_id":%q,"deployment_id":%q,"teardown":1}`, d.Workspace, d.Deployment)
	answer, err := s.rollout.Task(t.Context(), json.RawMessage(input))
	if want := fmt.Sprintf(`{"next":"Wait","due":%q}`, clock.Format(s.get(t, d.Ref).PurgeAt)); err != nil || string(answer) != want {
		t.Errorf("before its time the purge answers %s (%v), want %s", answer, err, want)
	}
	s.rollout.Now = func() time.Time { return farFuture }
	s.rescue(t)
	s.wantGone(t, d)
}

// TestUndeleteWhileItIsStopped undeletes a deployment before its release is stopped, and lets
// the stop continue when the new release serves.
func TestUndeleteWhileItIsStopped(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	reached, goOn := make(chan struct{}), make(chan struct{})
	m.target.entered = once("Remove", func() {
		close(reached)
		<-goOn
	})
	s.deleteWithin(t, d, longestWindow)
	<-reached
	back := s.undelete(t, d.Ref)
	s.awaitEnd(t, workflow.Rollout, back.Latest)
	close(goOn)
	s.tasks.Wait()
	s.settle(t, d.Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
}

// TestARolloutOfBeforeADeletionIsTakenBack lets a step of a rollout continue after its
// deployment was deleted and undeleted meanwhile: anything that the step starts does not stay.
func TestARolloutOfBeforeADeletionIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		of     func(m *machine) *fake
		method string
	}{
		{"build.Start", func(m *machine) *fake { return &m.builder.fake }, "Start"},
		{"build.Await", func(m *machine) *fake { return &m.builder.fake }, "Await"},
		{"target.Apply", func(m *machine) *fake { return &m.target.fake }, "Apply"},
		{"target.Await", func(m *machine) *fake { return &m.target.fake }, "Await"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			s := m.start(t, m.table)
			reached, goOn := make(chan struct{}), make(chan struct{})
			c.of(m).entered = once(c.method, func() {
				close(reached)
				<-goOn
			})
			d := s.create(t, fromGit("weather"))
			waiting := s.patch(t, d.Ref, again("dev"))
			<-reached
			s.deleteWithin(t, d, longestWindow)
			back := s.undelete(t, d.Ref)
			s.awaitEnd(t, workflow.Rollout, back.Latest)
			close(goOn)
			s.tasks.Wait()
			s.settle(t, d.Ref)
			s.wantAtRest(t, d.Ref, revision.Deployed)
			if builds := s.builder.left(); !slices.Equal(builds, []string{back.Latest}) {
				t.Errorf("builds %v are left, want that of %s", builds, back.Latest)
			}
			for id, want := range map[string]revision.Status{d.Latest: revision.Interrupted, waiting.Latest: revision.Skipped, back.Latest: revision.Deployed} {
				if got := s.revision(t, d.Ref, id).Status; got != want {
					t.Errorf("revision %s is %s, want %s", id, got, want)
				}
			}
		})
	}
}

// TestWhatWasActiveKeepsItsBuildWhenItsRolloutIsCutOff deletes a deployment while a step of the
// active revision's rollout works, and undeletes it.
func TestWhatWasActiveKeepsItsBuildWhenItsRolloutIsCutOff(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	reached, goOn := make(chan struct{}), make(chan struct{})
	// The step that promotes removes the previous release.
	m.target.entered = once("Remove", func() {
		close(reached)
		<-goOn
	})
	s.patch(t, d.Ref, again("dev"))
	<-reached
	active := s.get(t, d.Ref).Active
	s.deleteWithin(t, d, longestWindow)
	close(goOn)
	s.awaitEnd(t, workflow.Rollout, active)
	back := s.undelete(t, d.Ref)
	s.settle(t, d.Ref)
	s.tasks.Wait()
	s.wantAtRest(t, d.Ref, revision.Deployed)
	if builds := s.builder.left(); !slices.Contains(builds, active) || slices.Contains(builds, back.Latest) {
		t.Errorf("builds %v are left, want that of %s, which %s has too", builds, active, back.Latest)
	}
}

// TestAnUndeleteThatIsKilledGoesOn kills the server after each write of a deletion, the undelete
// and its rollout.
func TestAnUndeleteThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	for n := 1; ; n += check.Every(4) {
		m := newMachine(t)
		first := m.start(t, m.table)
		d := first.settle(t, first.create(t, fromGit("weather")).Ref)
		first.fillWithThreads(t, d.Ref, 2)
		first.kill()
		died := dies(t, m, n, func(t *testing.T, s *server) {
			ctx := context.WithoutCancel(t.Context())
			if s.deployments.Delete(ctx, d.Ref, deployment.Deletion{Window: longestWindow}) != nil {
				return
			}
			if back, err := s.deployments.Undelete(ctx, d.Ref, nil); err == nil {
				s.carried(ctx, back.Latest)
			}
		})
		s := m.start(t, m.table)
		s.resume(t)
		if s.get(t, d.Ref).Status == deployment.AwaitingDelete {
			s.undelete(t, d.Ref)
		}
		s.settle(t, d.Ref)
		s.tasks.Wait()
		s.wantAtRest(t, d.Ref, revision.Deployed)
		if got := len(s.revisions(t, d.Ref)); got != 2 && (got != 1 || died && n > 1) {
			t.Errorf("there are %d revisions", got)
		}
		s.kill()
		if t.Failed() {
			t.Fatalf("after the death at write %d", n)
		}
		if !died {
			return
		}
	}
}

// TestAPurgeThatUndeleteMeets lets an undelete and the purge race at the end of the window:
// the deployment lives with all its data, or nothing of it is left.
func TestAPurgeThatUndeleteMeets(t *testing.T) {
	t.Parallel()
	for range 10 {
		m := newMachine(t)
		s := m.start(t, m.table)
		d := s.settle(t, s.create(t, fromGit("weather")).Ref)
		kept := s.fillWithThreads(t, d.Ref, 2)
		stopped := s.performed("StopReleases")
		s.deleteWithin(t, d, longestWindow)
		<-stopped
		// By this clock the window is over already.
		s.rollout.Now = func() time.Time { return farFuture }
		input := fmt.Sprintf(`{"step":"BeginPurge","workspace_id":%q,"deployment_id":%q,"teardown":1}`, d.Workspace, d.Deployment)
		answered := make(chan string, 1)
		go func() {
			answer, err := s.rollout.Task(context.WithoutCancel(t.Context()), json.RawMessage(input))
			answered <- fmt.Sprint(string(answer), err)
		}()
		_, err := s.deployments.Undelete(t.Context(), d.Ref, nil)
		switch answer := <-answered; {
		case err == nil && answer == `{"next":"Done","due":""}<nil>`:
			s.settle(t, d.Ref)
			s.wantAtRest(t, d.Ref, revision.Deployed)
			for _, ref := range kept {
				if _, err := s.threads.Get(t.Context(), ref); err != nil {
					t.Errorf("its thread: %v", err)
				}
			}
		case fault.Is(err, fault.Conflict) && answer == `{"next":"EraseThreads","due":""}<nil>`:
			if got := s.get(t, d.Ref); !got.Doomed() {
				t.Errorf("it is %+v", got)
			}
		default:
			t.Errorf("undelete: %v, purge: %s", err, answer)
		}
		s.kill()
	}
}
