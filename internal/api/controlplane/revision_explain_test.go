package controlplane_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/test/check"
)

var explanationShape = members(map[string]valueShape{
	"revision_id": text, "status": text, "status_reason": orNull(text), "cause": text, "evidence": listOf(text), "remedy": orNull(text), "log": listOf(text),
	"phase_timestamps": anyObject, "active_revision_id": orNull(text),
})

// TestAFailureIsExplained has a build fail whose log names the cause, and a secret.
func TestAFailureIsExplained(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	body := fromGit("weather")
	body["secrets"] = []any{object{"name": "TOKEN", "value": "open-sesame"}}
	path, created := f.create(t, body)
	id := created.id("latest_revision_id")
	at := path + "/revisions/" + id + "/explanation"
	wantDetail(t, f.call(t, "GET", at, nil), http.StatusConflict, "Revision ID "+id+" has not failed: its status is CREATING.")

	ref := deployment.Ref{Workspace: f.own.workspace, Deployment: created.id("id")}.Revision(id)
	for _, next := range []revision.Status{revision.AwaitingBuild, revision.Building} {
		d, r, err := f.deployments.GetRevision(t.Context(), ref)
		check.Must(t, err)
		check.Must(t, f.deployments.Provisioned(t.Context(), d, r.Change(clock.System(), next)))
	}
	f.print(t, id, revisionlog.Build, "installs with open-sesame\nERROR: ResolutionImpossible: for help visit a page\n")
	d, r, err := f.deployments.GetRevision(t.Context(), ref)
	check.Must(t, err)
	check.Must(t, f.deployments.Fail(t.Context(), d, r, build.ReasonDependenciesFailed, "pip failed."))

	got := f.call(t, "GET", at, nil)
	wantStatus(t, got, http.StatusOK)
	wantShape(t, got, explanationShape)
	if got.id("cause") != "The versions of the dependencies contradict each other: ResolutionImpossible." || !strings.Contains(got.id("remedy"), "lock file") {
		t.Errorf("got %s", got.text)
	}
	if text := string(got.text); strings.Contains(text, "open-sesame") || !strings.Contains(text, "installs with ***") {
		t.Errorf("the secret is not hidden: %s", got.text)
	}
}

// TestTooLittleMemoryIsExplained: of an agent, and of a command of its build.
func TestTooLittleMemoryIsExplained(t *testing.T) {
	t.Parallel()
	for name, reached := range map[string][]revision.Status{
		"build": {revision.AwaitingBuild, revision.Building},
		"agent": {revision.AwaitingBuild, revision.Building, revision.AwaitingDeploy, revision.Deploying},
	} {
		f := setUp(t)
		path, created := f.create(t, fromGit(name))
		id := created.id("latest_revision_id")
		ref := deployment.Ref{Workspace: f.own.workspace, Deployment: created.id("id")}.Revision(id)
		for _, next := range reached {
			d, r, err := f.deployments.GetRevision(t.Context(), ref)
			check.Must(t, err)
			check.Must(t, f.deployments.Provisioned(t.Context(), d, r.Change(clock.System(), next)))
		}
		d, r, err := f.deployments.GetRevision(t.Context(), ref)
		check.Must(t, err)
		check.Must(t, f.deployments.Fail(t.Context(), d, r, build.ReasonOutOfMemory, "It was ended because it used more than the 512 MB that it may."))
		got := f.call(t, "GET", path+"/revisions/"+id+"/explanation", nil)
		wantShape(t, got, explanationShape)
		if got.id("cause") != "The memory did not suffice." || !strings.Contains(got.id("remedy"), "resource_spec") {
			t.Errorf("%s: got %s", name, got.text)
		}
	}
}
