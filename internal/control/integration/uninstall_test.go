package integration_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestUninstall(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	mine, theirs := f.install(t, workspace), f.install(t, other)
	wantFault(t, f.Uninstall(t.Context(), integration.Ref{Workspace: other, Integration: mine.Integration}), fault.NotFound)
	check.Must(t, f.Uninstall(t.Context(), mine.Ref))
	if !f.github.Installed(77) {
		t.Error("the App was removed while another workspace uses it")
	}
	wantFault(t, f.Uninstall(t.Context(), mine.Ref), fault.NotFound)
	if again := f.install(t, workspace); again.Integration == mine.Integration {
		t.Error("an integration that was removed came back")
	} else {
		check.Must(t, f.Uninstall(t.Context(), again.Ref))
	}
	check.Must(t, f.Uninstall(t.Context(), theirs.Ref))
	if f.github.Installed(77) {
		t.Error("the App was not removed")
	}
	f.github.Install(acme)
	gone := f.install(t, workspace)
	f.github.Uninstall(77)
	check.Must(t, f.Uninstall(t.Context(), gone.Ref))
}

// TestNothingComesToUseWhatIsBeingRemoved checks what others can do while GitHub is asked to
// remove the App.
func TestNothingComesToUseWhatIsBeingRemoved(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	mine := f.install(t, workspace)
	use, err := f.Check(t.Context(), workspace, mine.Integration, f.repoURL("acme/agent"))
	check.Must(t, err)
	// The fixture's client is intercepted before GitHub removes the App.
	during := func(answer func(http.ResponseWriter)) {
		f.github.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodDelete {
				return false
			}
			_, err := f.Check(r.Context(), workspace, mine.Integration, f.repoURL("acme/agent"))
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("a deployment may use it: %v", err)
			}
			if err := f.table.Transact(r.Context(), use("a-deployment", f.clock.Now())...); err == nil {
				t.Error("a deployment that asked before uses it")
			}
			for _, who := range []string{workspace, other} {
				_, err = f.CompleteInstall(r.Context(), integration.Callback{State: f.begin(t, who), Code: f.github.Consent(ada), InstallationID: acme.ID})
				if !fault.Is(err, fault.Conflict) {
					t.Errorf("workspace %s binds it: %v", who, err)
				}
			}
			if answer != nil {
				answer(w)
			}
			return answer != nil
		})
	}
	during(func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) })
	wantFault(t, f.Uninstall(t.Context(), mine.Ref), fault.Unavailable)
	f.github.Intercept(nil)
	if _, err := f.Check(t.Context(), workspace, mine.Integration, f.repoURL("acme/agent")); err != nil {
		t.Errorf("it stays, and cannot be used: %v", err)
	}
	theirs := f.install(t, other)
	check.Must(t, f.Uninstall(t.Context(), theirs.Ref))
	during(nil)
	check.Must(t, f.Uninstall(t.Context(), mine.Ref))
	if f.github.Installed(acme.ID) {
		t.Error("the App was not removed")
	}
	f.github.Intercept(nil)
	f.github.Install(acme)
	f.install(t, other)
}

func TestRemovedAtGitHub(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	refs := []integration.Ref{f.install(t, workspace).Ref, f.install(t, other).Ref}
	for range 2 {
		check.Must(t, f.Removed(t.Context(), 77))
		for _, ref := range refs {
			_, err := f.GetInstallation(t.Context(), ref)
			wantFault(t, err, fault.NotFound)
		}
	}
	f.install(t, workspace)
}

// TestANewInstallationTakesThePlaceOfTheFormer removes the App at GitHub and installs it again,
// which has another id there. GitHub may or may not tell of the removal.
func TestANewInstallationTakesThePlaceOfTheFormer(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]bool{"GitHub told of it": true, "GitHub did not tell": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			old := f.install(t, workspace)
			use, err := f.Check(t.Context(), workspace, old.Integration, f.repoURL("acme/agent"))
			check.Must(t, err)
			check.Must(t, f.table.Transact(t.Context(), use("a-deployment", f.clock.Now())...))
			f.github.Uninstall(acme.ID)
			if told {
				check.Must(t, f.Removed(t.Context(), acme.ID))
			}
			_, err = f.CloneCredentials(t.Context(), workspace, old.Integration, f.repoURL("acme/agent"))
			wantFault(t, err, fault.Conflict, "Install it again: deployments go on")
			again := acme
			again.ID = 78
			f.github.Install(again)
			install := func(workspace string) integration.Installation {
				t.Helper()
				i, err := f.CompleteInstall(t.Context(), integration.Callback{State: f.begin(t, workspace), Code: f.github.Consent(ada), InstallationID: again.ID})
				check.Must(t, err)
				return i
			}
			for range 2 {
				if got := install(workspace); got.Ref != old.Ref || got.InstallationID != again.ID {
					t.Errorf("the integration is %+v, was %+v", got, old)
				}
			}
			if got, err := f.GetInstallation(t.Context(), old.Ref); err != nil || got.InstallationID != again.ID {
				t.Errorf("got %+v (%v)", got, err)
			}
			if _, err := f.CloneCredentials(t.Context(), workspace, old.Integration, f.repoURL("acme/agent")); err != nil {
				t.Error(err)
			}
			for id, want := range map[int64][]string{acme.ID: {}, again.ID: {workspace}} {
				if got, err := f.Workspaces(t.Context(), id); err != nil || !slices.Equal(got, want) {
					t.Errorf("installation %d is bound to %v (%v), want %v", id, got, err, want)
				}
			}
			if got := install(other); got.Integration == old.Integration {
				t.Error("another workspace has the integration")
			}
		})
	}
}

// staleTable answers queries of an index with an earlier result: an index of DynamoDB may lag
// behind.
type staleTable struct {
	table.Table
	page table.Page
}

func (s staleTable) Query(ctx context.Context, query table.Query) (table.Page, error) {
	if query.Index != "" {
		return s.page, nil
	}
	return s.Table.Query(ctx, query)
}

func TestARemovalThatCameLateSparesWhatWasBoundAnew(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	first := f.install(t, workspace)
	page, err := f.table.Query(t.Context(), keys.InstallationBindings(77))
	check.Must(t, err)
	check.Must(t, f.Uninstall(t.Context(), first.Ref))
	f.github.Install(acme)
	again := f.install(t, workspace)
	config := f.config
	config.Table = staleTable{f.table, page}
	late, err := integration.New(config)
	check.Must(t, err)
	check.Must(t, late.Removed(t.Context(), 77))
	_, err = f.GetInstallation(t.Context(), again.Ref)
	check.Must(t, err)
	if bound, err := f.Workspaces(t.Context(), 77); err != nil || len(bound) != 1 {
		t.Errorf("bound to %v (%v)", bound, err)
	}
}

// TestAnAppThatAnotherWorkspaceHasJustBoundStays has an index that does not show the binding yet.
func TestAnAppThatAnotherWorkspaceHasJustBoundStays(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	mine := f.install(t, workspace)
	page, err := f.table.Query(t.Context(), keys.InstallationBindings(acme.ID))
	check.Must(t, err)
	theirs := f.install(t, other)
	config := f.config
	config.Table = staleTable{f.table, page}
	early, err := integration.New(config)
	check.Must(t, err)
	check.Must(t, early.Uninstall(t.Context(), mine.Ref))
	if !f.github.Installed(acme.ID) {
		t.Fatal("the App was removed while another workspace uses it")
	}
	check.Must(t, f.Uninstall(t.Context(), theirs.Ref))
	if f.github.Installed(acme.ID) {
		t.Error("the App was not removed")
	}
}

// TestARemovalThatWasKilledKeepsOthersOutForMinutesOnly kills a removal that waits for GitHub.
func TestARemovalThatWasKilledKeepsOthersOutForMinutesOnly(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	mine := f.install(t, workspace)
	killed := f.config
	killed.Table = &deadTable{Table: f.table}
	s, err := integration.New(killed)
	check.Must(t, err)
	f.github.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete {
			return false
		}
		killed.Table.(*deadTable).dead.Store(true)
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	if err := s.Uninstall(t.Context(), mine.Ref); err == nil {
		t.Fatal("the removal was not killed")
	}
	f.github.Intercept(nil)
	bind := func() error {
		_, err := f.CompleteInstall(t.Context(), integration.Callback{State: f.begin(t, other), Code: f.github.Consent(ada), InstallationID: acme.ID})
		return err
	}
	wantFault(t, bind(), fault.Conflict)
	f.clock.Pass(10 * time.Minute)
	check.Must(t, bind())
	check.Must(t, f.Uninstall(t.Context(), mine.Ref))
	if !f.github.Installed(acme.ID) {
		t.Error("the App was removed while another workspace uses it")
	}
}

// deadTable answers nothing once it is dead, as for a process that was killed.
type deadTable struct {
	table.Table
	dead atomic.Bool
}

func (d *deadTable) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	if d.dead.Load() {
		return nil, errors.New("the process was killed")
	}
	return d.Table.Get(ctx, key)
}

// tableThat is a table that calls a function before the next transaction.
type tableThat struct {
	table.Table
	before func()
}

func (t *tableThat) Transact(ctx context.Context, writes ...table.Write) error {
	if before := t.before; before != nil {
		t.before = nil
		before()
	}
	return t.Table.Transact(ctx, writes...)
}

// TestADeletionMeetsADeployment that is created with the integration after the deletion has looked
// for deployments.
func TestADeletionMeetsADeployment(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	installed, credential := f.install(t, workspace), f.credential(t, workspace, "git.example.com")
	slow := &tableThat{Table: f.table}
	config := f.config
	config.Table = slow
	s, err := integration.New(config)
	check.Must(t, err)
	for _, c := range []struct {
		integration, repoURL string
		deleteIt             func(context.Context, integration.Ref) error
	}{
		{integration: installed.Integration, repoURL: f.repoURL("acme/agent"), deleteIt: s.Uninstall},
		{integration: credential.Integration, repoURL: "https://git.example.com/team/agent", deleteIt: s.DeleteCredential},
	} {
		slow.before = func() {
			use, err := f.Check(t.Context(), workspace, c.integration, c.repoURL)
			check.Must(t, err)
			check.Must(t, f.table.Transact(t.Context(), use(deployment, f.clock.Now())...))
		}
		wantFault(t, c.deleteIt(t.Context(), integration.Ref{Workspace: workspace, Integration: c.integration}), fault.Conflict, "in use", deployment)
		if _, err := f.CloneCredentials(t.Context(), workspace, c.integration, c.repoURL); err != nil {
			t.Errorf("the deployment has no credentials: %v", err)
		}
	}
}
