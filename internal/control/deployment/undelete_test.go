package deployment_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/event"
	"github.com/slipway-run/slipway/internal/test/check"
)

const window = 7 * 24 * time.Hour

// deleteWithin deletes a deployment with a recovery window.
func (f *fixture) deleteWithin(t *testing.T, ref deployment.Ref, window time.Duration) deployment.Deployment {
	t.Helper()
	check.Must(t, f.Delete(t.Context(), ref, deployment.Deletion{Window: window}))
	return f.get(t, ref)
}

func (f *fixture) undelete(t *testing.T, ref deployment.Ref) deployment.Deployment {
	t.Helper()
	d, err := f.Undelete(t.Context(), ref, nil)
	check.Must(t, err)
	if diff := cmp.Diff(f.get(t, ref), d, sameDeployment); diff != "" {
		t.Errorf("what was answered is not what is read (-read +answered):\n%s", diff)
	}
	return d
}

func (f *fixture) wantRefused(t *testing.T, ref deployment.Ref, words string) {
	t.Helper()
	before := f.get(t, ref)
	_, err := f.Undelete(t.Context(), ref, nil)
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v, want a conflict that says %q", err, words)
	}
	if diff := cmp.Diff(before, f.get(t, ref), sameDeployment); diff != "" {
		t.Errorf("what was refused changed it (-before +after):\n%s", diff)
	}
}

// TestUndeleteGivesEverythingBack deletes a deployment with everything that a deployment can
// have, and undeletes it.
func TestUndeleteGivesEverythingBack(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	request := fromGit("weather")
	credential := f.credential(t)
	request.SourceConfig.BuildOnPush, request.SourceConfig.IntegrationID = new(true), &credential
	request.Secrets = []deployment.Secret{{Name: "A", Value: "b"}}
	created := f.create(t, request)
	f.promote(t, created.Ref)
	project, err := f.TracingProject(t.Context(), created.Ref)
	check.Must(t, err)
	deleted := f.deleteWithin(t, created.Ref, window)
	if deleted.Status != deployment.AwaitingDelete || !deleted.PurgeAt.Equal(deleted.Updated.Add(window)) {
		t.Errorf("it is %s until %v", deleted.Status, deleted.PurgeAt)
	}
	if got := f.watched(t, created.Ref); got != "" {
		t.Errorf("pushes to %q still build it", got)
	}
	if err := f.integrations.DeleteCredential(t.Context(), integration.Ref{Workspace: workspace, Integration: credential}); !fault.Is(err, fault.Conflict) {
		t.Errorf("deleting its integration: got %v", err)
	}

	if _, err := f.Serving(t.Context(), workspace, created.Deployment, ""); !fault.Is(err, fault.Conflict) {
		t.Errorf("who serves: got %v, want a conflict", err)
	}

	back := f.undelete(t, created.Ref)
	if _, err := f.Serving(t.Context(), workspace, created.Deployment, ""); !fault.Is(err, fault.Unavailable) {
		t.Errorf("who serves until it is deployed: got %v, want it to be unavailable", err)
	}
	if back.Status != deployment.Ready || !back.PurgeAt.IsZero() || back.Active != "" || back.Latest == deleted.Latest || !back.Busy || back.Slot != back.Latest {
		t.Errorf("it is back as %+v", back)
	}
	made, from := f.revision(t, created.Ref, back.Latest), f.revision(t, created.Ref, deleted.Active)
	if made.Status != revision.Creating || !made.Again || !made.IsBuilt() || made.CommitSHA != from.CommitSHA {
		t.Errorf("its revision is %+v, made from %+v", made, from)
	}
	found, err := f.Search(t.Context(), workspace, deployment.Filter{Name: "weather"}, record.Window{Limit: 10})
	if err != nil || len(found.Items) != 1 || found.Items[0].Deployment != created.Deployment {
		t.Errorf("the list has %v (%v)", found.Items, err)
	}
	if _, err := f.table.Get(t.Context(), keys.DeploymentName(workspace, "weather")); err != nil {
		t.Errorf("its name: %v", err)
	}
	if len(f.overdue(t, f.clock.Now().Add(2*time.Minute))) != 1 {
		t.Error("nobody sees to it that its rollout goes on")
	}
	if got := f.watched(t, created.Ref); got != "main" {
		t.Errorf("pushes to %q build it", got)
	}
	again, err := f.TracingProject(t.Context(), created.Ref)
	if err != nil || again.ID != project.ID || again.Deployment != created.Deployment {
		t.Errorf("its tracing project is %+v (%v), want %+v", again, err, project)
	}
	if secrets, err := f.Secrets(t.Context(), back.Ref, back.Secrets); err != nil || len(secrets) != 1 {
		t.Errorf("its secrets are %v (%v)", secrets, err)
	}
	if _, err := f.Create(t.Context(), fromGit("weather")); !fault.Is(err, fault.Conflict) {
		t.Errorf("another one of the name: got %v", err)
	}
	log, _, err := audit.NewStore(f.table, f.clock.Now).List(t.Context(), workspace, audit.Filter{}, record.Window{Limit: 2})
	if err != nil || len(log) != 2 || log[0].Action != audit.UndeleteDeployment || log[0].Resource != created.Deployment || log[1].Action != audit.DeleteDeployment {
		t.Errorf("the audit log says %+v (%v)", log, err)
	}
	told, err := f.Events().Deployment(workspace, created.Deployment).Read(t.Context(), "", 100)
	check.Must(t, err)
	var types []event.Type
	for _, e := range told {
		types = append(types, e.Type)
	}
	at := slices.Index(types, event.DeploymentDeleted)
	if at < 0 || !slices.Equal(types[at:], []event.Type{event.DeploymentDeleted, event.DeploymentUndeleted, "revision.creating"}) {
		t.Errorf("it is told %v", types)
	}
	f.wantRefused(t, created.Ref, "is READY: there is no deletion to undo")

	f.promote(t, created.Ref)
	if live := f.get(t, created.Ref); live.Active != back.Latest || live.Previous != from.Revision || live.Retiring != "" {
		t.Errorf("when it is deployed: %+v", live)
	}
	deleted = f.deleteWithin(t, created.Ref, window)
	if deleted.TeardownName() == f.engine.all()[0].Name || deleted.Teardown != 2 {
		t.Errorf("its second teardown is %q", deleted.TeardownName())
	}
	if last := f.undelete(t, created.Ref); !f.revision(t, last.Ref, last.Latest).IsBuilt() {
		t.Error("the second undelete builds anew")
	}
}

// TestUndeleteIsRefused checks each state in which there is nothing to undo.
func TestUndeleteIsRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("weather"))
	f.wantRefused(t, d.Ref, "is AWAITING_DATABASE: there is no deletion to undo")
	deleted := f.deleteWithin(t, d.Ref, window)
	other := f.create(t, fromGit("weather"))
	f.wantRefused(t, d.Ref, `A deployment with the name "weather" already exists.`)
	f.delete(t, other.Ref)
	f.wantRefused(t, other.Ref, "was deleted without a recovery window")
	if _, err := f.Undelete(t.Context(), d.Ref, []int64{deleted.Version() - 1}); !fault.Is(err, fault.Stale) {
		t.Errorf("of another version: got %v", err)
	}
	f.clock.Pass(window)
	f.wantRefused(t, d.Ref, "ended at ")
	if _, err := f.Undelete(t.Context(), deployment.Ref{Workspace: workspace, Deployment: "unknown"}, nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown one: got %v", err)
	}
}

// TestUndeleteAfterTheProjectWasDeleted checks that the deployment has a new tracing project.
func TestUndeleteAfterTheProjectWasDeleted(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("weather"))
	before, err := f.TracingProject(t.Context(), d.Ref)
	check.Must(t, err)
	check.Must(t, f.Delete(t.Context(), d.Ref, deployment.Deletion{Window: window, TracingProject: true}))
	f.undelete(t, d.Ref)
	after, err := f.TracingProject(t.Context(), d.Ref)
	if err != nil || after.ID == before.ID || after.Name != "weather" {
		t.Errorf("got %+v (%v) after %+v", after, err, before)
	}
}

// TestUndeleteOfWhatNeverServed builds the newest revision, cuts off the revision that was in
// flight, and skips the revisions that waited.
func TestUndeleteOfWhatNeverServed(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("weather"))
	waiting := f.patch(t, d.Ref, again)
	f.deleteWithin(t, d.Ref, window)
	back := f.undelete(t, d.Ref)
	if r := f.revision(t, d.Ref, back.Latest); r.Again || r.Status != revision.Queued || *r.Config.RepoRef != *waiting.RevisionConfig.RepoRef {
		t.Errorf("its revision is %+v", r)
	}
	if r := f.revision(t, d.Ref, d.Latest); r.Status != revision.Interrupted || r.Reason != revision.ReasonDeleted {
		t.Errorf("the one that was in flight is %s: %s", r.Status, r.Reason)
	}
	if r := f.revision(t, d.Ref, waiting.Latest); r.Status != revision.Skipped {
		t.Errorf("the one that waited is %s", r.Status)
	}
	if diff := cmp.Diff([]string{d.Latest}, back.Leftover); diff != "" {
		t.Errorf("what may still run (-want +got):\n%s", diff)
	}
	if err := f.Cleared(t.Context(), back); err != nil || f.get(t, d.Ref).Leftover != nil {
		t.Errorf("nothing runs any more (%v), but %v", err, f.get(t, d.Ref).Leftover)
	}
}

// TestUndeleteWithoutASource checks that no revision is made, and that nothing is left for
// reconcile.
func TestUndeleteWithoutASource(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, deployment.NewDeployment{
		Workspace: workspace, Name: "weather", Source: revision.InternalSource, SourceConfig: deployment.SourceConfig{}, RevisionConfig: revision.Config{},
	})
	f.deleteWithin(t, d.Ref, window)
	back := f.undelete(t, d.Ref)
	if back.Latest != "" || back.Busy || len(f.revisions(t, d.Ref)) != 0 || len(f.overdue(t, f.clock.Now().Add(2*window))) != 0 {
		t.Errorf("it is %+v", back)
	}
	for _, s := range f.engine.all() {
		if s.Machine == workflow.Rollout {
			t.Errorf("%v was started", s)
		}
	}
}

// TestAWindowIsOnlyEverEndedEarlier deletes the deployment again with other windows.
func TestAWindowIsOnlyEverEndedEarlier(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("weather"))
	first := f.deleteWithin(t, d.Ref, window)
	if again := f.deleteWithin(t, d.Ref, 2*window); !again.PurgeAt.Equal(first.PurgeAt) || again.Version() != first.Version() {
		t.Errorf("a longer one moved the end to %v", again.PurgeAt)
	}
	shorter := f.deleteWithin(t, d.Ref, time.Hour)
	if !shorter.PurgeAt.Equal(shorter.Updated.Add(time.Hour)) || shorter.Teardown != 2 || shorter.TeardownName() == first.TeardownName() {
		t.Errorf("a shorter one: until %v, teardown %s", shorter.PurgeAt, shorter.TeardownName())
	}
	f.undelete(t, d.Ref)
	f.deleteWithin(t, d.Ref, window)
	if last := f.deleteWithin(t, d.Ref, 0); !last.Doomed() {
		t.Errorf("without one it is %+v", last)
	}
	f.wantRefused(t, d.Ref, "ended at ")

	other := f.create(t, fromGit("other"))
	f.deleteWithin(t, other.Ref, window)
	check.Must(t, f.Delete(t.Context(), other.Ref, deployment.Deletion{Force: true, Window: window}))
	if _, err := f.Undelete(t.Context(), other.Ref, nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("deleted by force: got %v", err)
	}
	if hidden, err := f.GetHidden(t.Context(), other.Ref); err != nil || !hidden.Doomed() {
		t.Errorf("deleted by force: %+v (%v)", hidden, err)
	}
	var begun []string
	for _, s := range f.engine.all() {
		if s.Machine == workflow.Teardown && strings.HasPrefix(s.Name, other.Deployment) {
			begun = append(begun, s.Name)
		}
	}
	if diff := cmp.Diff([]string{other.Deployment, other.Deployment + "-2"}, begun); diff != "" {
		t.Errorf("teardowns (-want +got):\n%s", diff)
	}
}

// TestReconcileLeavesAWindowAlone once nothing runs any more.
func TestReconcileLeavesAWindowAlone(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.deleteWithin(t, f.create(t, fromGit("weather")).Ref, window)
	looksAt := func(after time.Duration) bool { return len(f.overdue(t, f.clock.Now().Add(after))) == 1 }
	if !looksAt(2 * time.Minute) {
		t.Error("nobody sees to it that it is stopped")
	}
	check.Must(t, f.Rest(t.Context(), d))
	check.Must(t, f.Renew(t.Context(), f.get(t, d.Ref)))
	if looksAt(window-time.Minute) || !looksAt(window+2*time.Minute) {
		t.Error("reconcile does not look at it just when its window is over")
	}
	f.clock.Pass(window)
	if err := f.Renew(t.Context(), f.get(t, d.Ref)); err != nil || !looksAt(2*time.Minute) {
		t.Errorf("after the window nobody sees to it that it is erased (%v)", err)
	}
}

// TestOneOfUndeleteAndPurgeWins runs several undeletes and purges at the same time.
func TestOneOfUndeleteAndPurgeWins(t *testing.T) {
	t.Parallel()
	for range 20 {
		f := setUp(t)
		d := f.deleteWithin(t, f.create(t, fromGit("weather")).Ref, window)
		var wg sync.WaitGroup
		var mu sync.Mutex
		undeleted, purged := 0, 0
		for n := range 6 {
			wg.Go(func() {
				ctx := context.WithoutCancel(t.Context())
				if n%2 == 0 {
					_, err := f.Undelete(ctx, d.Ref, nil)
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						undeleted++
					} else if !fault.Is(err, fault.Conflict) {
						t.Errorf("undelete: %v", err)
					}
					return
				}
				err := f.BeginPurge(ctx, d)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					purged++
				} else if !errors.Is(err, record.ErrLost) {
					t.Errorf("purge: %v", err)
				}
			})
		}
		wg.Wait()
		if undeleted+purged != 1 {
			t.Fatalf("%d undeletes and %d purges succeeded", undeleted, purged)
		}
		got, revisions := f.get(t, d.Ref), len(f.revisions(t, d.Ref))
		if lives := got.Status == deployment.Ready && revisions == 2; lives != (undeleted == 1) || got.Doomed() != (purged == 1) {
			t.Fatalf("after %d undeletes and %d purges it is %s with %d revisions", undeleted, purged, got.Status, revisions)
		}
	}
}

// TestWhatADeletedDeploymentTookIsGivenUpWithIt erases a deployment after its window.
func TestWhatADeletedDeploymentTookIsGivenUpWithIt(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.newListener(t, "cluster", "agents")
	request := fromGit("weather")
	credential := f.credential(t)
	request.SourceConfig.IntegrationID = &credential
	for _, request := range []deployment.NewDeployment{at(l, "placed", ""), request} {
		d := f.deleteWithin(t, f.create(t, request).Ref, window)
		check.Must(t, f.BeginPurge(t.Context(), d))
		if more, err := f.EraseRevisions(t.Context(), d.Ref, func(revision.Ref) error { return nil }); more || err != nil {
			t.Fatal(more, err)
		}
		f.wantPartitionsEmpty(t, d)
		if _, err := f.table.Get(t.Context(), keys.DeploymentName(workspace, d.Name)); !errors.Is(err, table.ErrNotFound) {
			t.Errorf("its name: %v", err)
		}
	}
	if err := f.listeners.Delete(t.Context(), l.Ref, nil); err != nil {
		t.Errorf("the listener: %v", err)
	}
	if err := f.integrations.DeleteCredential(t.Context(), integration.Ref{Workspace: workspace, Integration: credential}); err != nil {
		t.Errorf("the integration: %v", err)
	}
}

// TestDeletedDeploymentsAreListedWithoutReadingTheOthers asks for deleted deployments only.
func TestDeletedDeploymentsAreListedWithoutReadingTheOthers(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	tb := &queried{Table: f.table}
	store := deployment.NewStore(deployment.Config{Table: tb, Sealer: f.sealer, Now: f.clock.Now})
	var gone deployment.Ref
	for _, name := range []string{"a", "b", "c", "d"} {
		gone = f.create(t, fromGit(name)).Ref
	}
	check.Must(t, f.Delete(t.Context(), gone, deployment.Deletion{Window: time.Hour}))
	page, err := store.Search(t.Context(), workspace, deployment.Filter{Statuses: []deployment.Status{deployment.AwaitingDelete}}, record.Window{Limit: 10})
	check.Must(t, err)
	if len(page.Items) != 1 || page.Items[0].Deployment != gone.Deployment || tb.items.Load() != 1 {
		t.Errorf("read %d deployments for %+v", tb.items.Load(), page.Items)
	}
}
