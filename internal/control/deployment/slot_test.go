package deployment_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
)

// again is a PATCH that makes a revision.
var again = deployment.Patch{RevisionConfig: revision.Config{ConfigPath: new("framework.json")}}

// statuses returns the statuses of a deployment's revisions, oldest first.
func (f *fixture) statuses(t *testing.T, ref deployment.Ref) []revision.Status {
	t.Helper()
	var statuses []revision.Status
	for _, r := range f.revisions(t, ref) {
		statuses = append([]revision.Status{r.Status}, statuses...)
	}
	return statuses
}

// carry moves the revision that holds the slot to DEPLOYING, as a rollout does.
func (f *fixture) carry(t *testing.T, ref deployment.Ref) (deployment.Deployment, revision.Revision) {
	t.Helper()
	read := func() (deployment.Deployment, revision.Revision) {
		d := f.get(t, ref)
		return d, f.revision(t, ref, d.Slot)
	}
	d, r := read()
	steps := []func() error{
		func() error { return f.Provisioned(t.Context(), d, r.Change(f.clock.Now(), revision.AwaitingBuild)) },
		func() error { return f.Advance(t.Context(), d, r.Change(f.clock.Now(), revision.Building)) },
		func() error {
			return f.Built(t.Context(), d, r, build.Result{CommitSHA: "sha-" + r.Revision, Artifact: build.Artifact{Dir: "/builds/" + r.Revision, Graphs: []string{"agent"}}, Record: build.NewRecord("")})
		},
		func() error { return f.Advance(t.Context(), d, r.Releasing(f.clock.Now())) },
	}
	for i, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		d, r = read()
	}
	return d, r
}

func (f *fixture) promote(t *testing.T, ref deployment.Ref) revision.Revision {
	t.Helper()
	d, r := f.carry(t, ref)
	check.Must(t, f.Promote(t.Context(), d, r))
	return r
}

func TestARevisionWaitsWhileAnotherIsInFlight(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	first := f.create(t, fromGit("weather"))
	second := f.patch(t, first.Ref, again)
	third := f.patch(t, first.Ref, again)
	if diff := cmp.Diff([]revision.Status{revision.Creating, revision.Queued, revision.Queued}, f.statuses(t, first.Ref)); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	d := f.get(t, first.Ref)
	if d.Latest != third.Latest || second.Latest == third.Latest || d.Active != "" || d.Slot != first.Latest || !d.Busy {
		t.Errorf("got %+v, want the first in the slot and the third the latest", d)
	}
	if got := f.engine.all(); len(got) != 1 {
		t.Errorf("started %v, want the first rollout only", got)
	}
}

// TestTheNewestQueuedRevisionGoesNext checks both ways in which the slot is passed on.
func TestTheNewestQueuedRevisionGoesNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end    func(f *fixture, t *testing.T, d deployment.Deployment, r revision.Revision) error
		status revision.Status
		active bool
	}{
		"after a promotion": {func(f *fixture, t *testing.T, d deployment.Deployment, r revision.Revision) error {
			return f.Promote(t.Context(), d, r)
		}, revision.Deployed, true},
		"after a failure": {func(f *fixture, t *testing.T, d deployment.Deployment, r revision.Revision) error {
			return f.Fail(t.Context(), d, r, "REASON", "words")
		}, revision.DeployFailed, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			created := f.create(t, fromGit("weather"))
			for range 3 {
				f.patch(t, created.Ref, again)
			}
			d, r := f.carry(t, created.Ref)
			check.Must(t, c.end(f, t, d, r))
			want := []revision.Status{c.status, revision.Skipped, revision.Skipped, revision.Queued}
			if diff := cmp.Diff(want, f.statuses(t, d.Ref)); diff != "" {
				t.Errorf("statuses (-want +got):\n%s", diff)
			}
			d = f.get(t, d.Ref)
			if d.Slot != d.Latest || !d.Busy || (d.Active == r.Revision) != c.active {
				t.Errorf("got %+v, want the latest in the slot", d)
			}
		})
	}
}

// TestNothingIsAwaitedWithoutARevisionInFlight ends the first revision before its deployment was
// provisioned.
func TestNothingIsAwaitedWithoutARevisionInFlight(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for name, end := range map[string]func(deployment.Deployment, revision.Revision) error{
		"fails": func(d deployment.Deployment, r revision.Revision) error {
			return f.Fail(t.Context(), d, r, "REASON", "words")
		},
		"is-cancelled": func(d deployment.Deployment, r revision.Revision) error {
			_, err := f.Cancel(t.Context(), r.Ref)
			return errors.Join(err, f.PassOn(t.Context(), f.get(t, d.Ref)))
		},
	} {
		d := f.create(t, fromGit(name))
		check.Must(t, end(d, f.revision(t, d.Ref, d.Latest)))
		if d = f.get(t, d.Ref); d.Status != deployment.Ready || d.Busy {
			t.Errorf("its first revision %s: it is %s", name, d.Status)
		}
	}
}

func TestAPromotionMovesTheActiveRevision(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	created := f.create(t, fromGit("weather"))
	if _, err := f.Serving(t.Context(), workspace, created.Deployment, ""); !fault.Is(err, fault.Unavailable) {
		t.Errorf("before: got %v, want a fault of kind unavailable", err)
	}
	first := f.promote(t, created.Ref)
	d := f.get(t, created.Ref)
	if d.Active != first.Revision || d.Busy || d.Retiring != "" || d.Status != deployment.Ready || d.CommitSHA != "sha-"+first.Revision {
		t.Errorf("after the first promotion: got %+v", d)
	}
	if diff := cmp.Diff([]string{"agent"}, d.Graphs); diff != "" {
		t.Errorf("graphs (-want +got):\n%s", diff)
	}
	serving, err := f.Serving(t.Context(), workspace, d.Deployment, "")
	if want := compute.Ref(first.Ref); err != nil || serving != want {
		t.Errorf("serving: got %v (%v), want %v", serving, err, want)
	}
	f.patch(t, d.Ref, again)
	if got := f.get(t, d.Ref); got.Active != first.Revision || got.CommitSHA != "" || got.Latest == first.Revision {
		t.Errorf("with a newer revision in flight: got %+v, want the first active, and no commit for the newest", got)
	}
	second := f.promote(t, d.Ref)
	if got := f.get(t, d.Ref); got.Active != second.Revision || got.Retiring != first.Revision {
		t.Errorf("after the second promotion: got %+v, want it active and the first retiring", got)
	}
}

func TestAFailedRolloutLeavesTheActiveRevision(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	created := f.create(t, fromGit("weather"))
	first := f.promote(t, created.Ref)
	f.patch(t, created.Ref, again)
	d, r := f.carry(t, created.Ref)
	check.Must(t, f.Fail(t.Context(), d, r, "REASON", "words"))
	d, r = f.get(t, d.Ref), f.revision(t, d.Ref, r.Revision)
	if d.Active != first.Revision || d.Busy || d.Retiring != "" || r.Status != revision.DeployFailed || r.Reason != "REASON" || r.Message != "words" {
		t.Errorf("got %+v and %+v, want the first active and the second failed", d, r)
	}
	d = f.patch(t, d.Ref, again)
	if r := f.revision(t, d.Ref, d.Latest); r.Status != revision.Creating || d.Slot != d.Latest {
		t.Errorf("the next revision is %s in slot %s, want it to go at once", r.Status, d.Slot)
	}
	want := started{workflow.Rollout, d.Latest, `{"workspace_id":"` + workspace + `","deployment_id":"` + d.Deployment + `","revision_id":"` + d.Latest + `"}`}
	if got := f.engine.all(); got[len(got)-1] != want {
		t.Errorf("started %v at last, want %v", got[len(got)-1], want)
	}
}

// TestWritesOfARolloutThatWasOvertaken checks that no write of the rollout is made on an
// outdated state.
func TestWritesOfARolloutThatWasOvertaken(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	created := f.create(t, fromGit("weather"))
	d, r := f.carry(t, created.Ref)
	check.Must(t, f.Fail(t.Context(), d, r, "REASON", "words"))
	want := f.get(t, d.Ref)
	for name, write := range map[string]func() error{
		"Advance": func() error { return f.Advance(t.Context(), d, r.Change(f.clock.Now(), revision.Deployed)) },
		"Promote": func() error { return f.Promote(t.Context(), d, r) },
		"Fail":    func() error { return f.Fail(t.Context(), d, r, "OTHER", "other words") },
		"Retired": func() error { d := d; d.Retiring = r.Revision; return f.Retired(t.Context(), d, r.Revision) },
	} {
		if err := write(); !errors.Is(err, record.ErrLost) {
			t.Errorf("%s: got %v, want ErrLost", name, err)
		}
	}
	if diff := cmp.Diff(want, f.get(t, d.Ref), sameDeployment); diff != "" || f.revision(t, d.Ref, r.Revision).Reason != "REASON" {
		t.Errorf("they changed it (-before +after):\n%s", diff)
	}
}

// TestReconcileFindsWhatIsLeftToDo checks at each point whether reconcile looks after the
// deployment.
func TestReconcileFindsWhatIsLeftToDo(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	want := func(name string, want int) {
		t.Helper()
		if due := f.overdue(t, f.clock.Now().Add(time.Hour)); len(due) != want {
			t.Errorf("%s: got %d deployments, want %d", name, len(due), want)
		}
		if early := f.overdue(t, f.clock.Now().Add(30*time.Second)); len(early) != 0 {
			t.Errorf("%s, within the lease: got %d deployments, want none", name, len(early))
		}
	}
	d := f.create(t, fromGit("weather"))
	want("created", 1)
	first := f.promote(t, d.Ref)
	want("promoted", 0)
	f.clock.Pass(time.Hour)
	f.patch(t, d.Ref, again)
	want("in flight again", 1)
	f.promote(t, d.Ref)
	want("with a release that is to go", 1)
	check.Must(t, f.Retired(t.Context(), f.get(t, d.Ref), first.Revision))
	want("without it", 0)
	f.clock.Pass(time.Hour)
	check.Must(t, f.Delete(t.Context(), d.Ref, deployment.Deletion{}))
	want("deleted", 1)
	f.clock.Pass(time.Hour)
	before := f.get(t, d.Ref)
	check.Must(t, f.Renew(t.Context(), before))
	want("renewed", 1)
	if after := f.get(t, d.Ref); after.Version() != before.Version() || !after.Updated.Equal(before.Updated) {
		t.Errorf("the lease changed what clients see: version %d of %v, before %d of %v", after.Version(), after.Updated, before.Version(), before.Updated)
	}
}

// TestEachIsLookedAfterOnceInAPass renews leases to a time that the pass looks at too, as the
// pass at the start of a server does.
func TestEachIsLookedAfterOnceInAPass(t *testing.T) {
	t.Parallel()
	const n = 60
	f := setUp(t)
	for i := range n {
		f.create(t, fromGit(fmt.Sprint("weather-", i)))
	}
	looked := 0
	err := f.Overdue(t.Context(), f.clock.Now().AddDate(1, 0, 0), func(ctx context.Context, d deployment.Deployment) error {
		if looked++; looked > n {
			return fmt.Errorf("deployment %s comes again", d.Name)
		}
		return f.Renew(ctx, d)
	})
	if err != nil || looked != n {
		t.Errorf("%d were looked after (%v), want %d", looked, err, n)
	}
}

// TestEachStuckDeploymentHasALine checks the lines that an alarm counts, one for each deployment
// that could not be served, also if serving it panics.
func TestEachStuckDeploymentHasALine(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	var logged bytes.Buffer
	config := deployment.Config{Table: f.table, Workflow: f.engine, Sealer: f.sealer, Now: f.clock.Now, Log: slog.New(slog.NewJSONHandler(&logged, nil))}
	stuck, panics, well := f.create(t, fromGit("stuck")), f.create(t, fromGit("panics")), f.create(t, fromGit("well"))
	err := deployment.NewStore(config).Overdue(t.Context(), f.clock.Now().AddDate(1, 0, 0), func(_ context.Context, d deployment.Deployment) error {
		switch d.Deployment {
		case stuck.Deployment:
			return errors.New("disk on fire")
		case panics.Deployment:
			panic("disk on fire")
		}
		return nil
	})
	if err == nil {
		t.Error("the pass went well")
	}
	for id, want := range map[string]int{stuck.Deployment: 1, panics.Deployment: 1, well.Deployment: 0} {
		if got := strings.Count(logged.String(), `"msg":"`+deployment.Stuck+`","deployment":"`+id+`"`); got != want {
			t.Errorf("%s has %d lines, want %d, in:\n%s", id, got, want, &logged)
		}
	}
}

// counted is a table that counts its reads and its watchers.
type counted struct {
	table.Table
	reads, watchers atomic.Int64
}

func (c *counted) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	c.reads.Add(1)
	return c.Table.Get(ctx, key)
}

func (c *counted) Watch(key table.Key) table.Watcher {
	c.watchers.Add(1)
	return c.Table.Watch(key)
}

// TestAnAwaitWithoutTimeReadsOnce counts the reads of the most frequent request of polling
// clients.
func TestAnAwaitWithoutTimeReadsOnce(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("weather"))
	tb := &counted{Table: f.table}
	store := deployment.NewStore(deployment.Config{Table: tb, Now: f.clock.Now})
	r, err := store.Await(t.Context(), d.Revision(d.Latest), 0)
	if err != nil || r.Revision != d.Latest {
		t.Errorf("got %v (%v)", r, err)
	}
	if tb.reads.Load() != 2 || tb.watchers.Load() != 0 { // the deployment and its revision
		t.Errorf("it read %d items, with %d watchers", tb.reads.Load(), tb.watchers.Load())
	}
}

// TestRevisionsSortByCreationWhenTheClockGoesBack gives the store a clock that is behind the
// clock of the host which made the newest revision.
func TestRevisionsSortByCreationWhenTheClockGoesBack(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("weather"))
	var want []string
	for range 3 {
		f.clock.Pass(-time.Hour)
		want = append([]string{f.patch(t, d.Ref, again).Latest}, want...)
	}
	want = append(want, d.Latest)
	var got []string
	revisions := f.revisions(t, d.Ref)
	for i, r := range revisions {
		got = append(got, r.Revision)
		if i > 0 && !revisions[i-1].Created.After(r.Created) {
			t.Errorf("%v was created at %v, before %v", revisions[i-1].Revision, revisions[i-1].Created, r.Created)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
}

// TestReadingSeesWhatChangesWithoutTheVersion reads a deployment before and after its graphs
// are learned. This does not change its version.
func TestReadingSeesWhatChangesWithoutTheVersion(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromImage("weather"))
	f.promote(t, d.Ref)
	for _, graphs := range [][]string{{"agent", "other"}, {"other"}, {}} {
		before := f.get(t, d.Ref)
		check.Must(t, f.Learn(t.Context(), before, graphs))
		if after := f.get(t, d.Ref); !slices.Equal(after.Graphs, graphs) || after.Version() != before.Version() {
			t.Errorf("it has the graphs %v in version %d, want %v in %d", after.Graphs, after.Version(), graphs, before.Version())
		}
	}
}

// TestWhatAReplacedAgentReportsIsNotLearned: the agent of an earlier revision was asked for its
// graphs before the promotion of the next.
func TestWhatAReplacedAgentReportsIsNotLearned(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromImage("weather"))
	f.promote(t, d.Ref)
	before := f.get(t, d.Ref)
	f.patch(t, d.Ref, deployment.Patch{RevisionConfig: revision.Config{ImageURI: new("registry.test/agent:2")}})
	f.promote(t, d.Ref)
	check.Must(t, f.Learn(t.Context(), f.get(t, d.Ref), []string{"new"}))
	check.Must(t, f.Learn(t.Context(), before, []string{"old"}))
	if after := f.get(t, d.Ref); !slices.Equal(after.Graphs, []string{"new"}) {
		t.Errorf("it has the graphs %v", after.Graphs)
	}
}
