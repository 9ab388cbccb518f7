package rollout_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
)

// deleteAndAwait deletes a deployment and waits for its teardown.
func (s *server) deleteAndAwait(t *testing.T, d deployment.Deployment) {
	t.Helper()
	check.Must(t, s.deployments.Delete(t.Context(), d.Ref, deployment.Deletion{}))
	s.awaitEnd(t, workflow.Teardown, d.Deployment)
}

// deleteWithin deletes a deployment with a recovery window.
func (s *server) deleteWithin(t *testing.T, d deployment.Deployment, window time.Duration) {
	t.Helper()
	check.Must(t, s.deployments.Delete(t.Context(), d.Ref, deployment.Deletion{Window: window}))
}

// wantGone checks that nothing is left of a deployment: no release, build, log or item, and
// that its name is free.
func (s *server) wantGone(t *testing.T, d deployment.Deployment) {
	t.Helper()
	for what, left := range map[string][]string{"releases": s.target.left(), "builds": s.builder.left(), "logs": s.logs.left()} {
		if len(left) != 0 {
			t.Errorf("%s are left: %v", what, left)
		}
	}
	for _, query := range append(keys.ThreadLists(d.Workspace, d.Deployment),
		table.Query{PK: d.Key().PK}, keys.DeploymentList(d.Workspace), keys.Rollouts(farFuture), keys.Releases(),
		table.Query{PK: keys.DeploymentName(d.Workspace, d.Name).PK},
	) {
		page, err := s.table.Query(t.Context(), query)
		if err != nil || len(page.Items) != 0 {
			t.Errorf("%s %s: %d items are left (%v)", query.Index, query.PK, len(page.Items), err)
		}
	}
}

// fillWithThreads makes threads with one event each.
func (s *server) fillWithThreads(t *testing.T, ref deployment.Ref, n int) []thread.Ref {
	t.Helper()
	var threads []thread.Ref
	for range n {
		made, err := s.threads.Create(t.Context(), thread.Ref{Workspace: ref.Workspace, Deployment: ref.Deployment}, json.RawMessage("{}"), nil, false)
		check.Must(t, err)
		s.fillWithEvents(t, made.Ref, 1)
		threads = append(threads, made.Ref)
	}
	return threads
}

func (s *server) fillWithEvents(t *testing.T, ref thread.Ref, n int) {
	t.Helper()
	var writes []table.Write
	for i := range n {
		writes = append(writes, table.Put{Item: table.Item{Key: keys.Event(ref.Workspace, ref.Deployment, ref.Thread, int64(i))}})
		if len(writes) == table.MaxWrites || i == n-1 {
			check.Must(t, s.table.Transact(t.Context(), writes...))
			writes = nil
		}
	}
}

// TestALargeDeploymentIsErasedWhole deletes a deployment with hundreds of threads and
// revisions, and with a thread of many pages.
func TestALargeDeploymentIsErasedWhole(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	threads := s.fillWithThreads(t, d.Ref, 300)
	s.fillWithEvents(t, threads[150], 350)
	m.builder.hold(true)
	for i := range 200 {
		s.patch(t, d.Ref, again(fmt.Sprint(i)))
	}
	other := s.create(t, fromGit("other"))
	kept := s.fillWithThreads(t, other.Ref, 1)
	s.deleteAndAwait(t, d)
	if _, err := s.deployments.Get(t.Context(), d.Ref); !fault.Is(err, fault.NotFound) {
		t.Errorf("afterwards: got %v, want a fault of kind not_found", err)
	}
	for _, ref := range threads {
		page, err := m.table.Query(t.Context(), table.Query{PK: keys.Thread(ref.Workspace, ref.Deployment, ref.Thread).PK})
		if err != nil || len(page.Items) != 0 {
			t.Fatalf("thread %s: %d items are left (%v)", ref.Thread, len(page.Items), err)
		}
	}
	page, err := m.table.Query(t.Context(), table.Query{PK: keys.Thread(workspace, other.Deployment, kept[0].Thread).PK})
	if err != nil || len(page.Items) != 2 {
		t.Errorf("the other deployment's thread has %d items (%v), want 2", len(page.Items), err)
	}
	m.builder.finish()
	s.settle(t, other.Ref)
	s.deleteAndAwait(t, other)
	s.wantGone(t, d)
	s.wantGone(t, other)
}

// distant is a target whose releases another party stops.
type distant struct {
	*target
	// since is when that party was told; zero when it has stopped all releases.
	since atomic.Pointer[time.Time]
	// asked gets a value when the target is asked whether the releases are gone.
	asked chan struct{}
}

func (d *distant) RemovedSince(context.Context, compute.Ref) (time.Time, error) {
	select {
	case d.asked <- struct{}{}:
	default:
	}
	return *d.since.Load(), nil
}

// TestADeletedDeploymentStaysUntilItsReleasesAreGone has a party that is away when it is to stop a
// release: it comes back, or the deployment is deleted by force, or the workflow gives up first.
func TestADeletedDeploymentStaysUntilItsReleasesAreGone(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *server, away *distant, d deployment.Deployment) error{
		"it comes back": func(_ *server, away *distant, _ deployment.Deployment) error {
			away.since.Store(new(time.Time))
			return nil
		},
		"force": func(s *server, _ *distant, d deployment.Deployment) error {
			return s.deployments.Delete(t.Context(), d.Ref, deployment.Deletion{Force: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			s := m.start(t, m.table)
			d := s.settle(t, s.create(t, fromGit("weather")).Ref)
			away := &distant{target: m.target, asked: make(chan struct{})}
			away.since.Store(new(clock.System()))
			s.rollout.Targets[revision.GitHub] = away
			check.Must(t, s.deployments.Delete(t.Context(), d.Ref, deployment.Deletion{}))
			for range 2 { // the workflow asks again
				<-away.asked
			}
			s.rollout.Workflow = ended{s.workflow, workflow.Failed}
			s.rescue(t)
			if got := s.get(t, d.Ref).Status; got != deployment.AwaitingDelete || len(s.revisions(t, d.Ref)) != 1 {
				t.Errorf("meanwhile it is %s", got)
			}
			check.Must(t, end(s, away, d))
			s.awaitEnd(t, workflow.Teardown, d.Deployment)
			if got := s.executionStatus(t, workflow.Teardown, d.Deployment); got != workflow.Succeeded {
				t.Errorf("the teardown is %s", got)
			}
			s.wantGone(t, d)
		})
	}
}

// TestALongAbsenceIsAskedForSeldom calls the step that waits for a release, at different times
// after the order to stop it.
func TestALongAbsenceIsAskedForSeldom(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	now := clock.System()
	s.rollout.Now = func() time.Time { return now }
	away := &distant{target: m.target, asked: make(chan struct{})}
	s.rollout.Targets[revision.GitHub] = away
	check.Must(t, m.neglected(s).Delete(t.Context(), d.Ref, deployment.Deletion{}))
	for ago, want := range map[time.Duration]time.Duration{0: time.Second, 10 * time.Minute: 5 * time.Minute, 12 * time.Hour: 6 * time.Hour, 30 * 24 * time.Hour: 24 * time.Hour} {
		away.since.Store(new(now.Add(-ago)))
		input := fmt.Sprintf(`{"step":"EraseDeployment","workspace_id":%q,"deployment_id":%q,"teardown":1}`, d.Workspace, d.Deployment)
		answer, err := s.rollout.Task(t.Context(), json.RawMessage(input))
		if want := fmt.Sprintf(`{"next":"Wait","due":%q}`, clock.Format(now.Add(want))); err != nil || string(answer) != want {
			t.Errorf("%s after the order: got %s (%v), want %s", ago, answer, err, want)
		}
	}
}

// TestADeploymentCanBeDeletedDuringEachStep deletes the deployment when the step begins to
// act, waits until the teardown is over, and lets the step continue: a worker that was cut
// off, but does not notice.
func TestADeploymentCanBeDeletedDuringEachStep(t *testing.T) {
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
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s lost=%v", c.name, lost), func(t *testing.T) {
				t.Parallel()
				m := newMachine(t)
				s := m.start(t, m.table)
				reached, goOn := make(chan struct{}), make(chan struct{})
				c.of(m).entered = once(c.method, func() {
					close(reached)
					<-goOn
				})
				d := s.create(t, fromGit("weather"))
				s.patch(t, d.Ref, again("dev"))
				<-reached
				if lost { // so that the step begins the lost work again
					m.builder.lose()
					m.target.lose()
				}
				s.deleteAndAwait(t, d)
				close(goOn)
				s.tasks.Wait()
				s.wantGone(t, d)
			})
		}
	}
}

// once calls do at the first call of a method.
func once(method string, do func()) func(method, _ string) {
	first := make(chan struct{}, 1)
	first <- struct{}{}
	return func(called, _ string) {
		if called != method {
			return
		}
		select {
		case <-first:
			do()
		default:
		}
	}
}

// TestADeploymentCanBeDeletedWhileItIsPromoted deletes the deployment before the previous
// release is removed.
func TestADeploymentCanBeDeletedWhileItIsPromoted(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	reached, goOn := make(chan struct{}), make(chan struct{})
	m.target.entered = once("Remove", func() {
		close(reached)
		<-goOn
	})
	s.patch(t, d.Ref, again("dev"))
	<-reached
	s.deleteAndAwait(t, d)
	close(goOn)
	s.tasks.Wait()
	s.wantGone(t, d)
}

// TestDeletingAgainStartsNoSecondTeardown deletes the deployment while the teardown works, and
// when it is over.
func TestDeletingAgainStartsNoSecondTeardown(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	reached, goOn := make(chan struct{}), make(chan struct{})
	m.target.entered = once("Remove", func() {
		close(reached)
		<-goOn
	})
	for range 3 {
		check.Must(t, s.deployments.Delete(t.Context(), d.Ref, deployment.Deletion{}))
	}
	<-reached
	if got := s.get(t, d.Ref).Status; got != deployment.AwaitingDelete {
		t.Errorf("while it is torn down it is %s", got)
	}
	close(goOn)
	s.awaitEnd(t, workflow.Teardown, d.Deployment)
	s.wantGone(t, d)
	if err := s.deployments.Delete(t.Context(), d.Ref, deployment.Deletion{}); !fault.Is(err, fault.NotFound) {
		t.Errorf("afterwards: got %v, want a fault of kind not_found", err)
	}
}

// TestTroubleOfATeardown lets each method that the teardown calls fail once.
func TestTroubleOfATeardown(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	m.builder.fail("Remove", 1)
	m.target.fail("Remove", 1)
	s.deleteAndAwait(t, d)
	s.wantGone(t, d)
}

// TestTheNameOfADeletedDeploymentCanBeUsedAtOnce makes another deployment while the teardown
// works.
func TestTheNameOfADeletedDeploymentCanBeUsedAtOnce(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	check.Must(t, s.deployments.Delete(t.Context(), d.Ref, deployment.Deletion{}))
	next := s.settle(t, s.create(t, fromGit("weather")).Ref)
	s.awaitEnd(t, workflow.Teardown, d.Deployment)
	s.wantAtRest(t, next.Ref, revision.Deployed)
}

// TestATeardownStopsTheAgentFirst checks that no agent works on threads that are being erased.
func TestATeardownStopsTheAgentFirst(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	s.fillWithThreads(t, d.Ref, 3)
	left := make(chan int, 1)
	m.target.entered = once("Remove", func() {
		threads := 0
		for _, query := range keys.ThreadLists(d.Workspace, d.Deployment) {
			page, err := m.table.Query(context.Background(), query)
			if err != nil {
				t.Error(err)
			}
			threads += len(page.Items)
		}
		left <- threads
	})
	s.deleteAndAwait(t, d)
	if got := <-left; got != 3 {
		t.Errorf("%d threads were left when the release was stopped, want all 3", got)
	}
	s.wantGone(t, d)
}
