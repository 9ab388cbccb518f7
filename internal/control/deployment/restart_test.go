package deployment_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/event"
	"github.com/slipway-run/slipway/internal/test/check"
)

// restarts returns the executions of restarts that were started.
func (e *engine) restarts() (found []started) {
	for _, s := range e.all() {
		if s.Machine == workflow.Restart {
			found = append(found, s)
		}
	}
	return found
}

func TestARestartIsAWorkflowOfIds(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ctx, leave := context.WithCancel(audit.By(t.Context(), audit.Actor{Key: "key"}))
	defer leave()
	d := f.create(t, fromGit("weather"))
	first, err := f.Restart(ctx, d.Ref) // its first revision may have read its secrets already
	if err != nil || first.Revision != d.Latest {
		t.Errorf("got %+v, %v; want the revision in flight, %s", first, err, d.Latest)
	}
	active := f.promote(t, d.Ref).Revision
	before := f.get(t, d.Ref)
	second, err := f.Restart(ctx, d.Ref)
	if err != nil || second.Revision != active || second.ID == first.ID {
		t.Errorf("got %+v, %v; want another one of %s", second, err, active)
	}
	var want []started
	for _, restart := range []deployment.Restart{first, second} {
		input := `{"workspace_id":"` + workspace + `","deployment_id":"` + d.Deployment + `","restart_id":"` + restart.ID + `"}`
		want = append(want, started{workflow.Restart, restart.ID, input})
	}
	if diff := cmp.Diff(want, f.engine.restarts()); diff != "" {
		t.Errorf("workflows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before.Version(), f.get(t, d.Ref).Version()); diff != "" {
		t.Errorf("the deployment is changed: %s", diff)
	}
	entries, _, err := audit.NewStore(f.table, f.clock.Now).List(t.Context(), workspace, audit.Filter{Action: audit.RestartDeployment}, record.Window{Limit: 100})
	if err != nil || len(entries) != 2 || entries[0].Resource != d.Deployment || entries[0].Key != "key" {
		t.Errorf("audit log: %+v, %v", entries, err)
	}
}

func TestWhatCannotBeRestarted(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	refused := func(what string, ref deployment.Ref, kind fault.Kind) {
		t.Helper()
		if _, err := f.Restart(t.Context(), ref); !fault.Is(err, kind) {
			t.Errorf("%s: got %v, want %s", what, err, kind)
		}
	}
	refused("one that is unknown", deployment.Ref{Workspace: workspace, Deployment: id.New(f.clock.Now())}, fault.NotFound)
	d := f.create(t, fromGit("weather"))
	refused("one of another workspace", deployment.Ref{Workspace: id.New(f.clock.Now()), Deployment: d.Deployment}, fault.NotFound)
	failed, r := f.carry(t, d.Ref)
	check.Must(t, f.Fail(t.Context(), failed, r, "START_FAILED", "it ended"))
	refused("one that was never deployed", d.Ref, fault.Conflict)
	f.delete(t, d.Ref)
	refused("one that is being deleted", d.Ref, fault.Conflict)
	place := f.newListener(t, "cluster", "agents")
	request := fromImage("remote")
	request.SourceConfig.ListenerID = &place.Listener
	refused("one at a listener", f.create(t, request).Ref, fault.Conflict)
	other := f.create(t, fromGit("other"))
	f.engine.refuses = errors.New("no engine")
	refused("one whose workflow does not start", other.Ref, fault.Unavailable)
	if restarts := f.engine.restarts(); len(restarts) != 0 {
		t.Errorf("started: %v", restarts)
	}
	entries, _, err := audit.NewStore(f.table, f.clock.Now).List(t.Context(), workspace, audit.Filter{Action: audit.RestartDeployment}, record.Window{Limit: 100})
	if err != nil || len(entries) != 2 || entries[0].Outcome != audit.Refused || entries[0].Resource != other.Deployment || !strings.Contains(entries[0].Detail, "could not be started") {
		t.Errorf("audit log: %+v, %v", entries, err)
	}
}

// TestTheEndOfARestartIsToldOnce, whatever is reported about the restart afterwards, and only
// while the deployment lives.
func TestTheEndOfARestartIsToldOnce(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("weather"))
	active := f.promote(t, d.Ref).Revision
	one, other := id.New(f.clock.Now()), id.New(f.clock.Now())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := f.Restarted(t.Context(), d.Ref, one); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	check.Must(t, f.RestartFailed(t.Context(), d.Ref, one, "INTERNAL_ERROR", "no"))
	f.get(t, d.Ref) // the deployment is remembered
	check.Must(t, f.RestartFailed(t.Context(), d.Ref, other, "START_FAILED", "It ended."))
	check.Must(t, f.Restarted(t.Context(), d.Ref, other))
	// The step is repeated after the end of the other restart.
	check.Must(t, f.RestartFailed(t.Context(), d.Ref, one, "INTERNAL_ERROR", "no"))
	want := [][4]string{
		{"deployment.restarted", active, "", "All agents were replaced by restart " + one + "."},
		{"deployment.restart_failed", active, "START_FAILED", "The agents serve on as they were before restart " + other + ". It ended."},
	}
	wantEvents := func() {
		t.Helper()
		events, err := f.Events().Deployment(workspace, d.Deployment).Read(t.Context(), "", 1000)
		check.Must(t, err)
		var got [][4]string
		for _, e := range events {
			if e.Type == event.DeploymentRestarted || e.Type == event.DeploymentRestartFailed {
				got = append(got, [4]string{string(e.Type), e.Revision, e.Reason, e.Message})
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
	wantEvents()
	f.delete(t, d.Ref)
	check.Must(t, f.Restarted(t.Context(), d.Ref, one))
	wantEvents()
	// That deployment is gone.
	check.Must(t, f.Restarted(t.Context(), deployment.Ref{Workspace: workspace, Deployment: one}, one))
}

// TestWhoAsksWhatServesIsToldOfTheNewestRestart checks that the caller gets the newest restart
// whose end was reported, however many there were.
func TestWhoAsksWhatServesIsToldOfTheNewestRestart(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("weather"))
	active, want := f.promote(t, d.Ref).Revision, ""
	for range 30 {
		release, restart, err := f.ServingSince(t.Context(), workspace, d.Deployment, "")
		if err != nil || release.Revision != active || restart != want {
			t.Fatalf("got %s since %q (%v), want %s since %q", release.Revision, restart, err, active, want)
		}
		want = id.New(f.clock.Now())
		check.Must(t, f.Restarted(t.Context(), d.Ref, want))
	}
}
