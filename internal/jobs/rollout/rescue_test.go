package rollout_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
)

// lazy is an engine that accepts every start and does nothing.
type lazy struct{ workflow.Engine }

func (lazy) Start(context.Context, workflow.Machine, string, json.RawMessage) error { return nil }

// neglected returns a store whose workflows never begin, like the workflows of a process that
// died between a write and a start.
func (m *machine) neglected(s *server) *deployment.Store {
	return deployment.NewStore(deployment.Config{Table: m.table, Workflow: lazy{s.workflow}, Sealer: m.key, Now: clock.System})
}

func TestARolloutThatWasNeverStartedIsStarted(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d, err := m.neglected(s).Create(t.Context(), fromGit("weather"))
	check.Must(t, err)
	s.rescue(t)
	s.settle(t, d.Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
}

func TestATeardownThatWasNeverStartedIsStarted(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	check.Must(t, m.neglected(s).Delete(t.Context(), d.Ref, deployment.Deletion{}))
	s.rescue(t)
	s.awaitEnd(t, workflow.Teardown, d.Deployment)
	s.wantGone(t, d)
}

// TestRescueLeavesAloneWhatIsWithinItsLease runs a rescue before anything is due.
func TestRescueLeavesAloneWhatIsWithinItsLease(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d, err := m.neglected(s).Create(t.Context(), fromGit("weather"))
	check.Must(t, err)
	check.Must(t, s.rollout.Rescue(t.Context(), clock.System()))
	if _, err := s.workflow.Describe(t.Context(), workflow.Rollout, d.Latest); err == nil {
		t.Error("the rollout was started within its lease")
	}
}

// TestARolloutIsRescuedWhileAnEarlierReleaseCannotBeRemoved: the next rollout has lost its workflow
// while a target does not remove the release that the last rollout has replaced.
func TestARolloutIsRescuedWhileAnEarlierReleaseCannotBeRemoved(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	m.target.fail("Remove", -1)
	s.patch(t, d.Ref, again("dev"))
	d = s.settle(t, d.Ref)
	if d.Retiring == "" {
		t.Fatalf("got %+v, want a release that is to go", d)
	}
	d, err := m.neglected(s).Patch(t.Context(), d.Ref, again("next"))
	check.Must(t, err)
	if err := s.rollout.Rescue(t.Context(), farFuture); !errors.Is(err, errInjected) {
		t.Errorf("rescue: got %v, want the error of the target", err)
	}
	if _, err := s.workflow.Describe(t.Context(), workflow.Rollout, d.Latest); err != nil {
		t.Errorf("the next rollout: %v", err)
	}
	m.target.fail("Remove", 0)
	s.settle(t, d.Ref)
	s.rescue(t)
	s.wantAtRest(t, d.Ref, revision.Deployed)
}

// TestRescueLeavesAWorkflowThatRunsAlone runs a rescue while a rollout waits for its build.
func TestRescueLeavesAWorkflowThatRunsAlone(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	late := m.late()
	m.builder.hold(true)
	s := m.start(t, m.table)
	waiting := awaited(&m.builder.fake)
	d := s.create(t, fromGit("weather"))
	<-waiting
	late.Pass(time.Hour)
	s.rescue(t)
	if got := s.revision(t, d.Ref, d.Latest); got.Status != revision.Building || got.Reason != "" {
		t.Errorf("it is %s now: %s", got.Status, got.Message)
	}
	if due := s.overdue(t); len(due) != 1 {
		t.Errorf("reconcile looks after %v, want the deployment still", due)
	}
	m.builder.finish()
	s.settle(t, d.Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
}

// TestAThrottledRolloutSaysSo: while nothing performs a step that waits for nothing, the revision
// says that there is no worker, but not at once. It says nothing more when the step was performed.
func TestAThrottledRolloutSaysSo(t *testing.T) {
	t.Parallel()
	for step, status := range map[string]revision.Status{
		"Prepare": revision.Creating, "Build": revision.AwaitingBuild, "Deploy": revision.AwaitingDeploy,
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			late := m.late()
			s := m.start(t, m.table)
			var once sync.Once
			throttled, performed := make(chan struct{}), make(chan struct{})
			s.around = func(ctx context.Context, at string, perform performFunc) (json.RawMessage, error) {
				if at == step {
					once.Do(func() { close(throttled); <-performed })
				}
				return perform(ctx)
			}
			d := s.create(t, fromGit("weather"))
			<-throttled
			says := func(reason, words string) {
				t.Helper()
				s.rescue(t)
				if r := s.revision(t, d.Ref, d.Latest); r.Status != status || r.Reason != reason || !strings.Contains(r.Message, words) || r.Doomed() {
					t.Errorf("it is %s and says %s: %s", r.Status, r.Reason, r.Message)
				}
			}
			says("", "")
			late.Pass(2 * time.Minute)
			says("NO_CAPACITY", "quota of concurrent executions of Lambda")
			close(performed)
			s.settle(t, d.Ref)
			s.wantAtRest(t, d.Ref, revision.Deployed)
			if r := s.revision(t, d.Ref, d.Latest); r.Reason != "" || r.Message != "" {
				t.Errorf("in the end it says %s: %s", r.Reason, r.Message)
			}
		})
	}
}

// TestAFailureIsNotTakenForAThrottle: between the reading of the revision and the note that no
// worker has taken it up, a worker finds out why the revision fails.
func TestAFailureIsNotTakenForAThrottle(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	late := m.late()
	m.credentials = func(string, string, string) (string, error) {
		return "", fault.New(fault.Conflict, "The installation is suspended.")
	}
	tb := &watched{Table: m.table}
	s := m.start(t, tb)
	throttled, read, noted, rescued := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	s.around = func(ctx context.Context, at string, perform performFunc) (json.RawMessage, error) {
		if at != "Build" {
			return perform(ctx)
		}
		close(throttled)
		<-read
		answer, err := perform(ctx)
		close(noted)
		<-rescued
		return answer, err
	}
	request := fromGit("weather")
	request.SourceConfig.IntegrationID = new(integrationID)
	d := s.create(t, request)
	<-throttled
	late.Pass(2 * time.Minute)
	build := func(key table.Key) {
		if key == d.Revision(d.Latest).Key() && tb.read.Swap(nil) != nil {
			close(read)
			<-noted
		}
	}
	tb.read.Store(&build)
	s.rescue(t)
	close(rescued)
	s.settle(t, d.Ref)
	s.wantAtRest(t, d.Ref, revision.BuildFailed)
	if r := s.revision(t, d.Ref, d.Latest); r.Reason != "REPOSITORY_UNREACHABLE" {
		t.Errorf("it says %s: %s", r.Reason, r.Message)
	}
}

// ended is an engine that reports that an execution has ended.
type ended struct {
	workflow.Engine
	status workflow.Status
}

func (e ended) Describe(_ context.Context, machine workflow.Machine, name string) (workflow.Execution, error) {
	return workflow.Execution{Machine: machine, Name: name, Status: e.status}, nil
}

// TestARevisionWhoseWorkflowEndedWithoutItIsFailed checks each way in which a workflow can
// end, at each point of a rollout.
func TestARevisionWhoseWorkflowEndedWithoutItIsFailed(t *testing.T) {
	t.Parallel()
	for _, status := range []workflow.Status{workflow.Failed, workflow.TimedOut, workflow.Aborted, workflow.Succeeded} {
		for _, at := range rolloutSteps {
			t.Run(string(status)+" before "+at.name, func(t *testing.T) {
				t.Parallel()
				m := newMachine(t)
				s := m.start(t, m.table)
				d, err := m.neglected(s).Create(t.Context(), fromGit("weather"))
				check.Must(t, err)
				for _, step := range rolloutSteps {
					if step.name == at.name {
						break
					}
					s.perform(t, step.name, d)
				}
				s.rollout.Workflow = ended{s.workflow, status}
				s.rescue(t)
				s.wantAtRest(t, d.Ref, at.failed)
				if r := s.revision(t, d.Ref, d.Latest); r.Reason != compute.ReasonInternal {
					t.Errorf("got %s: %s", r.Reason, r.Message)
				}
				if left := m.builder.left(); len(left) != 0 {
					t.Errorf("builds are left: %v", left)
				}
			})
		}
	}
}

// perform performs a step of the rollout of a deployment's newest revision.
func (s *server) perform(t *testing.T, step string, d deployment.Deployment) {
	t.Helper()
	input, err := json.Marshal(map[string]string{
		"step": step, "workspace_id": d.Workspace, "deployment_id": d.Deployment, "revision_id": d.Latest,
	})
	check.Must(t, err)
	if _, err := s.rollout.Task(t.Context(), input); err != nil {
		t.Fatal(err)
	}
}

// TestTheQueueGoesOnAfterARescue lets a revision wait behind a revision whose workflow was
// aborted.
func TestTheQueueGoesOnAfterARescue(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.builder.hold(true)
	s := m.start(t, m.table)
	waiting := awaited(&m.builder.fake)
	first := s.create(t, fromGit("weather"))
	<-waiting
	s.patch(t, first.Ref, again("dev"))
	check.Must(t, s.workflow.Stop(t.Context(), workflow.Rollout, first.Latest, "by hand"))
	m.builder.hold(false)
	s.rescue(t)
	s.settle(t, first.Ref)
	s.wantAtRest(t, first.Ref, revision.Deployed)
	if got := s.revision(t, first.Ref, first.Latest).Status; got != revision.BuildFailed {
		t.Errorf("the first revision is %s, want BUILD_FAILED", got)
	}
}

// TestATeardownThatGaveUpIsFinished lets the teardown fail until the machine's attempts are
// over, then repairs the part that failed.
func TestATeardownThatGaveUpIsFinished(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(m *machine) *fake{
		"the target":  func(m *machine) *fake { return &m.target.fake },
		"the builder": func(m *machine) *fake { return &m.builder.fake },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			s := m.start(t, m.table)
			d := s.settle(t, s.create(t, fromGit("weather")).Ref)
			s.fillWithThreads(t, d.Ref, 50)
			of(m).fail("Remove", -1)
			s.deleteAndAwait(t, d)
			if got := s.executionStatus(t, workflow.Teardown, d.Deployment); got != workflow.Failed {
				t.Errorf("the teardown is %s, want FAILED", got)
			}
			if err := s.rollout.Rescue(t.Context(), farFuture); err == nil {
				t.Error("a rescue that could not finish the teardown has no error")
			}
			if got := s.get(t, d.Ref).Status; got != deployment.AwaitingDelete {
				t.Errorf("meanwhile it is %s", got)
			}
			of(m).fail("Remove", 0)
			s.rescue(t)
			s.wantGone(t, d)
		})
	}
}

// TestOneThatCannotBeReadDoesNotKeepTheOthers corrupts the stored data of the first of two
// deployments.
func TestOneThatCannotBeReadDoesNotKeepTheOthers(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	var made []deployment.Deployment
	for _, name := range []string{"one", "two"} {
		d, err := m.neglected(s).Create(t.Context(), fromGit(name))
		check.Must(t, err)
		made = append(made, d)
	}
	spoil := table.Update{Key: made[0].Key(), Body: []byte("{")}
	check.Must(t, m.table.Transact(t.Context(), spoil))
	if err := s.rollout.Rescue(t.Context(), farFuture); err == nil || !strings.Contains(err.Error(), made[0].Deployment) || !strings.Contains(err.Error(), deployment.Stuck) {
		t.Errorf("got %v, want the deployment that cannot be read", err)
	}
	s.settle(t, made[1].Ref)
	if got := s.revision(t, made[1].Ref, made[1].Latest).Status; got != revision.Deployed {
		t.Errorf("the second is %s", got)
	}
}

// TestADeploymentThatIsDeletedByForceIsTakenApart although the deletion by force has hidden it
// before its teardown could begin.
func TestADeploymentThatIsDeletedByForceIsTakenApart(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	s.patch(t, d.Ref, again("dev"))
	d = s.settle(t, d.Ref)
	s.fillWithThreads(t, d.Ref, 3)
	force(t, m.neglected(s), d.Ref)
	if _, err := s.deployments.Get(t.Context(), d.Ref); !fault.Is(err, fault.NotFound) {
		t.Errorf("it is still seen: %v", err)
	}
	s.rescue(t)
	s.awaitEnd(t, workflow.Teardown, d.Deployment)
	s.wantGone(t, d)
}

// TestForceLeavesBehindOnlyWhatCannotBeRemoved lets a target fail forever.
func TestForceLeavesBehindOnlyWhatCannotBeRemoved(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	m.target.fail("Remove", -1)
	force(t, s.deployments, d.Ref)
	s.awaitEnd(t, workflow.Teardown, d.Deployment)
	s.rescue(t)
	if left := m.builder.left(); len(left) != 0 || len(m.target.left()) != 1 {
		t.Errorf("builds %v and releases %v are left", left, m.target.left())
	}
	if page, err := m.table.Query(t.Context(), table.Query{PK: d.Key().PK}); err != nil || len(page.Items) != 0 {
		t.Errorf("%d records are left (%v)", len(page.Items), err)
	}
}

// TestForceLeavesNothingBehindWhileItsWorkflowTriesAgain: a target fails a few times, as often as
// one try of each step asks it to remove the release.
func TestForceLeavesNothingBehindWhileItsWorkflowTriesAgain(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	m.target.fail("Remove", 3)
	force(t, m.neglected(s), d.Ref)
	s.rescue(t)
	s.awaitEnd(t, workflow.Teardown, d.Deployment)
	s.wantGone(t, d)
}

// force deletes a deployment, and then again by force.
func force(t *testing.T, deployments *deployment.Store, ref deployment.Ref) {
	t.Helper()
	for _, forced := range []bool{false, true} {
		check.Must(t, deployments.Delete(t.Context(), ref, deployment.Deletion{Force: forced}))
	}
}

// TestOneThatCannotBeRescuedDoesNotKeepTheOthers lets the rescue of the first of two
// deployments fail.
func TestOneThatCannotBeRescuedDoesNotKeepTheOthers(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	var torn []deployment.Deployment
	for _, name := range []string{"one", "two"} {
		d := s.settle(t, s.create(t, fromGit(name)).Ref)
		check.Must(t, m.neglected(s).Delete(t.Context(), d.Ref, deployment.Deletion{}))
		torn = append(torn, d)
	}
	s.rollout.Workflow = ended{s.workflow, workflow.Failed}
	m.target.fail("Remove", 1)
	if err := s.rollout.Rescue(t.Context(), farFuture); err == nil {
		t.Error("the rescue that failed has no error")
	}
	if _, err := s.deployments.Get(t.Context(), torn[1].Ref); err == nil {
		t.Error("the second is still there")
	}
	s.rescue(t)
	for _, d := range torn {
		s.wantGone(t, d)
	}
}
