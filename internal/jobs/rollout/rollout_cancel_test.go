package rollout_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// cancel stops a revision, and checks that it is INTERRUPTED at once.
func (s *server) cancel(t *testing.T, ref deployment.Ref, id string) {
	t.Helper()
	r, err := s.deployments.Cancel(t.Context(), ref.Revision(id))
	if err != nil || r.Status != revision.Interrupted {
		t.Fatalf("got %s (%v), want INTERRUPTED", r.Status, err)
	}
}

// wantFree checks that the slot is free, and which releases and builds exist.
func (s *server) wantFree(t *testing.T, ref deployment.Ref, releases, builds []string) {
	t.Helper()
	if d := s.get(t, ref); d.Busy || d.Next != "" {
		t.Errorf("the slot is not free: %+v", d)
	}
	if diff := cmp.Diff(releases, s.target.left()); diff != "" {
		t.Errorf("releases (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(builds, s.builder.left()); diff != "" {
		t.Errorf("builds (-want +got):\n%s", diff)
	}
	if due := s.overdue(t); len(due) != 0 {
		t.Errorf("reconcile still looks after %v", due)
	}
}

// TestACancelledRolloutLeavesNothing cancels while the build runs and while the release
// starts. Both waits end long before the step's patience, the active release continues, and
// the next revision is deployed.
func TestACancelledRolloutLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]func(*machine) *fake{
		"while it is built":   func(m *machine) *fake { return &m.builder.fake },
		"while it is started": func(m *machine) *fake { return &m.target.fake },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.patience = time.Hour
			s := m.start(t, m.table)
			d := s.settle(t, s.create(t, fromGit("weather")).Ref)
			work, waiting := hold(m), make(chan struct{}, 100)
			work.hold(true)
			work.mu.Lock()
			work.entered = func(method, _ string) {
				if method == "Await" {
					waiting <- struct{}{}
				}
			}
			work.mu.Unlock()
			second := s.patch(t, d.Ref, again("dev"))
			<-waiting
			s.cancel(t, d.Ref, second.Latest)
			s.settle(t, d.Ref)
			s.wantFree(t, d.Ref, []string{d.Active}, []string{d.Active})
			if r := s.revision(t, d.Ref, second.Latest); r.Status != revision.Interrupted || r.Reason != revision.ReasonCancelled {
				t.Errorf("it became %s (%s)", r.Status, r.Reason)
			}
			work.hold(false)
			s.patch(t, d.Ref, again("dev"))
			s.settle(t, d.Ref)
			s.wantAtRest(t, d.Ref, revision.Deployed)
		})
	}
}

// watched is a table that calls read, when it is not nil, after each read of one item.
type watched struct {
	table.Table
	read atomic.Pointer[func(table.Key)]
}

func (w *watched) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	item, err := w.Table.Get(ctx, key)
	if read := w.read.Load(); read != nil {
		(*read)(key)
	}
	return item, err
}

// TestARevisionThatIsCancelledWhileAStepReadsIt ends at once, and not when the step's patience is
// over: the step has read the revision, and has not begun to wait.
func TestARevisionThatIsCancelledWhileAStepReadsIt(t *testing.T) {
	t.Parallel()
	for step, hold := range map[string]func(*machine) *fake{
		"AwaitBuild":   func(m *machine) *fake { return &m.builder.fake },
		"AwaitHealthy": func(m *machine) *fake { return &m.target.fake },
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.patience = time.Hour
			tb := &watched{Table: m.table}
			s := m.start(t, tb)
			d := s.settle(t, s.create(t, fromGit("weather")).Ref)
			hold(m).hold(true)
			s.around = func(ctx context.Context, name string, perform performFunc) (json.RawMessage, error) {
				if name == step {
					id := s.get(t, d.Ref).Latest
					cancel := func(key table.Key) {
						if key == d.Revision(id).Key() && tb.read.Swap(nil) != nil {
							s.cancel(t, d.Ref, id)
						}
					}
					tb.read.Store(&cancel)
				}
				return perform(ctx)
			}
			s.patch(t, d.Ref, again("dev"))
			s.settle(t, d.Ref)
			s.wantFree(t, d.Ref, []string{d.Active}, []string{d.Active})
		})
	}
}

// TestACancelledRevisionPassesTheSlotOn has other revisions waiting behind it.
func TestACancelledRevisionPassesTheSlotOn(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.builder.hold(true)
	s := m.start(t, m.table)
	d := s.create(t, fromGit("weather"))
	second := s.patch(t, d.Ref, again("a")).Latest
	third := s.patch(t, d.Ref, again("b")).Latest
	s.cancel(t, d.Ref, third)
	if got := s.get(t, d.Ref).Next; got != second {
		t.Errorf("%q goes next, want the second revision, %s", got, second)
	}
	s.cancel(t, d.Ref, d.Latest)
	m.builder.finish()
	s.settle(t, d.Ref)
	var got []revision.Status
	for _, r := range s.revisions(t, d.Ref) {
		got = append(got, r.Status)
	}
	if diff := cmp.Diff([]revision.Status{revision.Interrupted, revision.Deployed, revision.Interrupted}, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	s.wantFree(t, d.Ref, []string{second}, []string{second})
}

// TestARolloutThatDiedIsCancelledByReconcile cancels a revision that has no workflow any more.
func TestARolloutThatDiedIsCancelledByReconcile(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.target.hold(true)
	s := m.start(t, m.table)
	d := s.create(t, fromImage("weather"))
	for {
		if r := s.revision(t, d.Ref, d.Latest); r.Status == revision.Deploying {
			break
		}
	}
	s.kill()
	s = m.start(t, m.table)
	s.cancel(t, d.Ref, d.Latest)
	check.Must(t, s.workflow.Stop(t.Context(), "rollout", d.Latest, "lost"))
	s.rescue(t)
	s.wantFree(t, d.Ref, nil, nil)
}

// TestARedeployedRevisionIsNotBuiltAgain goes back to a revision, and checks that its build
// runs.
func TestARedeployedRevisionIsNotBuiltAgain(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	first := s.settle(t, s.create(t, fromGit("weather")).Ref)
	s.patch(t, first.Ref, again("dev"))
	second := s.settle(t, first.Ref)
	d, err := s.deployments.Redeploy(t.Context(), first.Revision(first.Active), nil)
	check.Must(t, err)
	if d.Latest == first.Active || *d.RevisionConfig.RepoRef != "main" || d.CommitSHA != "commit-of-main" {
		t.Errorf("got %+v, want a new revision of the first one's commit", d)
	}
	s.settle(t, d.Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
	if _, built := m.builder.specs[d.Latest]; built {
		t.Error("it was built again")
	}
	got, _ := m.target.release(d.Latest)
	if diff := cmp.Diff(built(build.Spec{Revision: first.Active}).Artifact, got.Artifact); diff != "" {
		t.Errorf("artifact (-want +got):\n%s", diff)
	}
	if r := s.revision(t, d.Ref, second.Active); r.Status != revision.Deployed {
		t.Errorf("the revision before is %s now", r.Status)
	}
	// A revision that never was deployed cannot be deployed again.
	m.target.health = func(compute.Release) compute.Status { return compute.Status{State: compute.Failed, Reason: "R"} }
	failed := s.patch(t, d.Ref, again("bad")).Latest
	s.settle(t, d.Ref)
	if _, err := s.deployments.Redeploy(t.Context(), d.Revision(failed), nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v, want a fault of kind invalid", err)
	}
}
