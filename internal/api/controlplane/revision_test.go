package controlplane_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/test/check"
)

const (
	jsonBodies    = "Every body of an answer is `application/json`, errors included; an answer without a body is a 204."
	commitShown   = "`repo_commit_sha` is that of the commit that was built: of the revision itself, and at the deployment of the latest revision; null before, and for an image."
	revisionFails = "Revision: one that fails is CREATE_FAILED, BUILD_FAILED or DEPLOY_FAILED, by the phase that it was in; the active one stays active, and the next is not held up."
)

func TestTheCommitOfARevision(t *testing.T) {
	t.Parallel()
	rule(t, commitShown)
	f := setUpRollouts(t)
	sha := func(path string) any {
		t.Helper()
		got := f.call(t, "GET", path, nil)
		wantStatus(t, got, http.StatusOK)
		return got.member("source_revision_config", "repo_commit_sha")
	}
	path, created := f.create(t, fromGit("weather"))
	first := path + "/revisions/" + created.id("latest_revision_id")
	f.await(t, path, created.id("latest_revision_id"))
	if created.member("source_revision_config", "repo_commit_sha") != nil || sha(first) != "c0ffee" || sha(path) != "c0ffee" {
		t.Errorf("created with %s; then %v of the revision, %v of the deployment", created.text, sha(first), sha(path))
	}
	patched := f.call(t, "PATCH", path, object{"source_revision_config": object{"repo_ref": "dev"}})
	if got := patched.member("source_revision_config", "repo_commit_sha"); got != nil {
		t.Errorf("the deployment shows %v of a revision that is not built", got)
	}
	imagePath, image := f.create(t, fromImage("image"))
	f.await(t, imagePath, image.id("latest_revision_id"))
	if got := sha(imagePath); got != nil {
		t.Errorf("an image has the commit %v", got)
	}
}

// TestARevisionThatFails has a revision fail in each phase, behind a revision that serves.
func TestARevisionThatFails(t *testing.T) {
	t.Parallel()
	rule(t, revisionFails)
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	first := created.id("latest_revision_id")
	f.deploy(t, created.id("id"))
	ref := deployment.Ref{Workspace: f.own.workspace, Deployment: created.id("id")}
	for _, c := range []struct {
		passes []revision.Status
		want   string
	}{
		{nil, "CREATE_FAILED"},
		{[]revision.Status{revision.AwaitingBuild, revision.Building}, "BUILD_FAILED"},
		{[]revision.Status{revision.AwaitingBuild, revision.Building, revision.AwaitingDeploy, revision.Deploying}, "DEPLOY_FAILED"},
	} {
		patched := f.call(t, "PATCH", path, object{"source_revision_config": object{"repo_ref": strings.ToLower(c.want)}})
		wantStatus(t, patched, http.StatusOK)
		id := patched.id("latest_revision_id")
		for _, next := range append(c.passes, "") {
			d, r, err := f.deployments.GetRevision(t.Context(), ref.Revision(id))
			if err == nil && next != "" {
				err = f.deployments.Provisioned(t.Context(), d, r.Change(clock.System(), next))
			} else if err == nil {
				err = f.deployments.Fail(t.Context(), d, r, "REASON", "Words.")
			}
			if err != nil {
				t.Fatalf("%s: %v", c.want, err)
			}
		}
		failed := f.call(t, "GET", path+"/revisions/"+id, nil)
		if failed.id("status") != c.want || failed.id("status_reason") != "REASON" || failed.id("status_message") != "Words." {
			t.Errorf("want %s, got %s", c.want, failed.text)
		}
		read := f.call(t, "GET", path, nil)
		if read.id("active_revision_id") != first || read.id("latest_revision_id") != id || read.id("status") != "READY" {
			t.Errorf("after %s: %s", c.want, read.text)
		}
	}
}

// TestTheMessageOfAFailureIsBounded fails revisions with messages that a repository has made long,
// and that are not UTF-8.
func TestTheMessageOfAFailureIsBounded(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	ref := deployment.Ref{Workspace: f.own.workspace, Deployment: created.id("id")}
	for message, want := range map[string]string{
		strings.Repeat("x", 1<<20): strings.Repeat("x", 16<<10) + " ...", "a" + strings.Repeat("é", 1<<20): "a" + strings.Repeat("é", 8<<10-1) + " ...", "a\xff": "a\uFFFD",
	} {
		id := f.call(t, "PATCH", path, object{"secrets": []any{}}).id("latest_revision_id")
		d, r, err := f.deployments.GetRevision(t.Context(), ref.Revision(id))
		if err == nil {
			err = f.deployments.Fail(t.Context(), d, r, "REASON", message)
		}
		check.Must(t, err)
		if failed := f.call(t, "GET", path+"/revisions/"+id, nil); failed.id("status_message") != want {
			t.Errorf("a message of %d bytes: got one of %d bytes", len(message), len(failed.id("status_message")))
		}
	}
}
