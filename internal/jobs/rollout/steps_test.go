package rollout_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

type performFunc = func(context.Context) (json.RawMessage, error)

// rolloutSteps are the steps of a rollout that succeeds, with a canary. Each has the status of
// a revision that fails there.
var rolloutSteps = []struct {
	name   string
	failed revision.Status
}{
	{"Prepare", revision.CreateFailed}, {"Provision", revision.CreateFailed},
	{"Build", revision.BuildFailed}, {"AwaitBuild", revision.BuildFailed},
	{"Deploy", revision.DeployFailed}, {"AwaitHealthy", revision.DeployFailed}, {"Canary", revision.DeployFailed}, {"Promote", revision.DeployFailed},
}

// TestAStepThatFailsOnceIsRepeated lets each step fail before it did anything, and after it did
// everything.
func TestAStepThatFailsOnceIsRepeated(t *testing.T) {
	t.Parallel()
	for _, step := range rolloutSteps {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s after=%v", step.name, after), func(t *testing.T) {
				t.Parallel()
				s, _ := mind(t, steady)
				d := s.settle(t, s.create(t, tried()).Ref)
				s.around = failing(step.name, 1, after)
				s.patch(t, d.Ref, again("dev"))
				d = s.settle(t, d.Ref)
				s.wantAtRest(t, d.Ref, revision.Deployed)
				s.wantTried(t, d)
			})
		}
	}
}

// failing makes the first n calls of a step fail, before or after it is performed.
func failing(name string, n int64, after bool) func(context.Context, string, performFunc) (json.RawMessage, error) {
	var calls atomic.Int64
	return func(ctx context.Context, step string, perform performFunc) (json.RawMessage, error) {
		if step != name || calls.Add(1) > n {
			return perform(ctx)
		}
		if after {
			if answer, err := perform(ctx); err != nil {
				return answer, err
			}
		}
		return nil, errInjected
	}
}

// TestAStepThatAlwaysFailsFailsTheRevision checks that the slot is passed on, and that the
// release that serves continues to serve.
func TestAStepThatAlwaysFailsFailsTheRevision(t *testing.T) {
	t.Parallel()
	const always = 1 << 40
	for _, step := range rolloutSteps {
		t.Run(step.name, func(t *testing.T) {
			t.Parallel()
			s, _ := mind(t, steady)
			first := s.settle(t, s.create(t, tried()).Ref)
			s.around = failing(step.name, always, false)
			s.patch(t, first.Ref, again("dev"))
			d := s.settle(t, first.Ref)
			s.wantAtRest(t, d.Ref, step.failed)
			r := s.revision(t, d.Ref, d.Latest)
			if d.Active != first.Active || r.Reason != compute.ReasonInternal || !strings.Contains(r.Message, "platform") {
				t.Errorf("active %s, %s: %s; want %s active and an internal error", d.Active, r.Reason, r.Message, first.Active)
			}
			s.around = nil
			s.patch(t, d.Ref, again("dev"))
			s.settle(t, d.Ref)
			s.wantAtRest(t, d.Ref, revision.Deployed)
		})
	}
}

// TestAStepWhoseAnswerIsAlwaysLost has done its work, and later steps do not undo it.
func TestAStepWhoseAnswerIsAlwaysLost(t *testing.T) {
	t.Parallel()
	const always = 1 << 40
	failed := map[string]revision.Status{
		"Prepare": revision.CreateFailed, "Provision": revision.BuildFailed, "Build": revision.BuildFailed, "AwaitBuild": revision.DeployFailed,
		"Deploy": revision.DeployFailed, "AwaitHealthy": revision.DeployFailed, "Canary": revision.DeployFailed, "Promote": revision.Deployed,
	}
	for _, step := range rolloutSteps {
		t.Run(step.name, func(t *testing.T) {
			t.Parallel()
			s, _ := mind(t, steady)
			d := s.settle(t, s.create(t, tried()).Ref)
			s.around = failing(step.name, always, true)
			s.patch(t, d.Ref, again("dev"))
			s.settle(t, d.Ref)
			s.wantAtRest(t, d.Ref, failed[step.name])
		})
	}
}

// repeats are ways to perform each step twice.
var repeats = map[string]func(context.Context, string, performFunc) (json.RawMessage, error){
	"in a row": func(ctx context.Context, _ string, perform performFunc) (json.RawMessage, error) {
		if answer, err := perform(ctx); err != nil {
			return answer, err
		}
		return perform(ctx)
	},
	"at once": func(ctx context.Context, _ string, perform performFunc) (json.RawMessage, error) {
		other := make(chan error)
		go func() {
			_, err := perform(ctx)
			other <- err
		}()
		answer, err := perform(ctx)
		if err := <-other; err != nil {
			return nil, err
		}
		return answer, err
	},
}

// TestEveryStepMayBeRepeated performs each step twice, one after the other and at the same time.
func TestEveryStepMayBeRepeated(t *testing.T) {
	t.Parallel()
	for name, around := range repeats {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := mind(t, steady)
			s.around = around
			d := s.settle(t, s.create(t, tried()).Ref)
			s.wantAtRest(t, d.Ref, revision.Deployed)
			for i := range 4 {
				s.patch(t, d.Ref, again(fmt.Sprint(i)))
			}
			d = s.settle(t, d.Ref)
			s.wantAtRest(t, d.Ref, revision.Deployed)
			s.wantTried(t, d)
			for _, r := range s.revisions(t, d.Ref) {
				if r.Reason != "" && r.Status != revision.Skipped {
					t.Errorf("revision %s is %s: %s", r.Revision, r.Status, r.Reason)
				}
			}
			s.deleteAndAwait(t, d)
			s.wantGone(t, d)
		})
	}
}

// TestTroubleOfTheBuilderAndTheTarget lets each method of both fail once, and always.
func TestTroubleOfTheBuilderAndTheTarget(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fail   func(m *machine, n int)
		always revision.Status
	}{
		"build.Start":   {func(m *machine, n int) { m.builder.fail("Start", n) }, revision.BuildFailed},
		"build.Await":   {func(m *machine, n int) { m.builder.fail("Await", n) }, revision.BuildFailed},
		"target.Apply":  {func(m *machine, n int) { m.target.fail("Apply", n) }, revision.DeployFailed},
		"target.Await":  {func(m *machine, n int) { m.target.fail("Await", n) }, revision.DeployFailed},
		"target.Remove": {func(m *machine, n int) { m.target.fail("Remove", n) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			s := m.start(t, m.table)
			d := s.settle(t, s.create(t, fromGit("weather")).Ref)
			c.fail(m, 1)
			s.patch(t, d.Ref, again("once"))
			s.settle(t, d.Ref)
			s.wantAtRest(t, d.Ref, revision.Deployed)
			if c.always == "" {
				return
			}
			c.fail(m, -1)
			s.patch(t, d.Ref, again("always"))
			s.settle(t, d.Ref)
			s.wantAtRest(t, d.Ref, c.always)
		})
	}
}

// TestAReleaseThatCannotBeRemovedIsRemovedLater lets the promotion succeed while the previous
// release cannot be stopped.
func TestAReleaseThatCannotBeRemovedIsRemovedLater(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	first := s.settle(t, s.create(t, fromGit("weather")).Ref)
	m.target.fail("Remove", -1)
	s.patch(t, first.Ref, again("dev"))
	d := s.settle(t, first.Ref)
	if d.Active != d.Latest || d.Busy || d.Retiring != first.Active || len(m.target.left()) != 2 {
		t.Errorf("got %+v with %v running, want it active and the first still there", d, m.target.left())
	}
	m.target.fail("Remove", 0)
	s.rescue(t)
	s.wantAtRest(t, d.Ref, revision.Deployed)
}

// TestNoReleaseIsForgottenWhenTwoAreToGo promotes again before the release that could not be
// removed is gone.
func TestNoReleaseIsForgottenWhenTwoAreToGo(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	m.target.fail("Remove", 6) // the attempts of one step
	s.patch(t, d.Ref, again("dev"))
	d = s.settle(t, d.Ref)
	if d.Retiring == "" {
		t.Fatalf("got %+v, want a release that is to go", d)
	}
	s.patch(t, d.Ref, again("dev"))
	s.settle(t, d.Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
}

// TestTheNextRevisionIsStartedAfterTroubleWithTheEngine passes the slot on while the engine
// refuses to start a workflow.
func TestTheNextRevisionIsStartedAfterTroubleWithTheEngine(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.builder.hold(true)
	s := m.start(t, m.table)
	engine := &refusing{Engine: s.workflow}
	s.rollout.Deployments = deployment.NewStore(deployment.Config{Table: m.table, Workflow: engine, Sealer: m.key, Now: s.rollout.Now})
	d := s.create(t, fromGit("weather"))
	d = s.patch(t, d.Ref, again("dev"))
	m.builder.finish()
	s.settle(t, d.Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
	if engine.asked.Load() < 2 {
		t.Error("the engine refused nothing")
	}
}

// refusing is an engine that refuses the first start.
type refusing struct {
	workflow.Engine
	asked atomic.Int64
}

func (r *refusing) Start(ctx context.Context, machine workflow.Machine, name string, input json.RawMessage) error {
	if r.asked.Add(1) == 1 {
		return errInjected
	}
	return r.Engine.Start(ctx, machine, name, input)
}
