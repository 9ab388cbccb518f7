package controlplane_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestADeployedRevisionIsDeployedAgain goes back to the first revision, under both names.
func TestADeployedRevisionIsDeployedAgain(t *testing.T) {
	t.Parallel()
	rule(t, "POST …/revisions/{revision_id}/redeploy: 200 Deployment with a new revision from a deployed one's configuration, secrets, resources and build.")
	rule(t, "POST …/revisions/{revision_id}/rollback is the same.")
	for _, verb := range []string{"redeploy", "rollback"} {
		f := setUp(t)
		body := with(fromImage("weather"), "secrets", []any{object{"name": "A", "value": "1"}})
		path, created := f.create(t, body)
		first := created.id("latest_revision_id")
		f.deploy(t, created.id("id"))
		patched := f.call(t, "PATCH", path, object{
			"source_revision_config": object{"image_uri": "registry.test/agent:2"}, "secrets": []any{}, "source_config": object{"resource_spec": object{"cpu": 4}},
		})
		second := patched.id("latest_revision_id")
		wantDetail(t, f.call(t, "POST", path+"/revisions/"+second+"/"+verb, nil), http.StatusBadRequest,
			"Revision ID "+second+" is CREATING. Only a revision that is DEPLOYED can be deployed again.")
		f.deploy(t, created.id("id"))
		again := f.call(t, "POST", path+"/revisions/"+first+"/"+verb, nil)
		wantStatus(t, again, http.StatusOK)
		third := again.id("latest_revision_id")
		if third == first || third == second || again.id("active_revision_id") != second {
			t.Errorf("%s: got %s", verb, again.text)
		}
		for _, member := range []string{"secrets", "source_config", "source_revision_config", "name"} {
			if diff := cmp.Diff(created.member(member), again.member(member)); diff != "" {
				t.Errorf("%s: %s (-first +now):\n%s", verb, member, diff)
			}
		}
		made := f.call(t, "GET", path+"/revisions/"+third, nil)
		if diff := cmp.Diff(created.member("source_revision_config"), made.member("source_revision_config")); diff != "" || made.id("status") != "CREATING" {
			t.Errorf("%s: the new revision is %s (-first +new):\n%s", verb, made.id("status"), diff)
		}
		f.deploy(t, created.id("id"))
		if got := f.call(t, "GET", path, nil).id("active_revision_id"); got != third {
			t.Errorf("%s: %s is active, want the new revision", verb, got)
		}
		f.call(t, "DELETE", path, nil)
		wantError(t, f.call(t, "POST", path+"/revisions/"+first+"/"+verb, nil), http.StatusConflict)
	}
}

// TestARedeployKeepsTheRulesOfThePresentState goes back to a tag while pushes are built.
func TestARedeployKeepsTheRulesOfThePresentState(t *testing.T) {
	t.Parallel()
	rule(t, "A tag `repo_ref` with `build_on_push` true is a 400, on create and on the combined state after a PATCH or a redeploy.")
	f := setUp(t)
	path, created := f.create(t, with(fromGit("weather"), "source_revision_config.repo_ref", "refs/tags/v1"))
	f.deploy(t, created.id("id"))
	wantStatus(t, f.call(t, "PATCH", path, object{
		"source_config": object{"build_on_push": true}, "source_revision_config": object{"repo_ref": "main"},
	}), http.StatusOK)
	wantDetail(t, f.call(t, "POST", path+"/revisions/"+created.id("latest_revision_id")+"/redeploy", nil), http.StatusBadRequest,
		"source_config.build_on_push must be false when source_revision_config.repo_ref is a tag (refs/tags/v1).")
}

// TestTheCombinedStateOfAPatchIsChecked sends each half of two values that do not fit together.
func TestTheCombinedStateOfAPatchIsChecked(t *testing.T) {
	t.Parallel()
	rule(t, "A tag `repo_ref` with `build_on_push` true is a 400, on create and on the combined state after a PATCH or a redeploy.")
	f := setUp(t)
	const detail = "source_config.build_on_push must be false when source_revision_config.repo_ref is a tag (refs/tags/v1)."
	tag := object{"source_revision_config": object{"repo_ref": "refs/tags/v1"}}
	push := object{"source_config": object{"build_on_push": true}}
	pushed, first := f.create(t, with(fromGit("pushed"), "source_config.build_on_push", true))
	wantDetail(t, f.call(t, "PATCH", pushed, tag), http.StatusBadRequest, detail)
	f.wantUnchanged(t, pushed, first)
	tagged, second := f.create(t, with(fromGit("tagged"), "source_revision_config.repo_ref", "refs/tags/v1"))
	wantDetail(t, f.call(t, "PATCH", tagged, push), http.StatusBadRequest, detail)
	f.wantUnchanged(t, tagged, second)
	wantStatus(t, f.call(t, "PATCH", pushed, with(tag, "source_config", object{"build_on_push": false})), http.StatusOK)
	wantStatus(t, f.call(t, "PATCH", tagged, with(push, "source_revision_config", object{"repo_ref": "main"})), http.StatusOK)
	wantDetail(t, f.call(t, "POST", "/v2/deployments", with(with(fromGit("new"), "source_config.build_on_push", true), "source_revision_config.repo_ref", "refs/tags/v1")),
		http.StatusBadRequest, detail)
}

func TestARevisionIsMadeOnRequest(t *testing.T) {
	t.Parallel()
	rule(t, "POST …/revisions: 201 Revision, always a new one; the optional body is a PATCH.")
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	for i, body := range []any{nil, object{}, object{"source_revision_config": object{"repo_ref": "dev"}}, object{"source_config": object{"build_on_push": true}}} {
		made := f.call(t, "POST", path+"/revisions", body)
		wantStatus(t, made, http.StatusCreated)
		wantShape(t, made, revisionShape)
		read := f.call(t, "GET", path, nil)
		if read.id("latest_revision_id") != made.id("id") || cmp.Diff(read.member("source_revision_config"), made.member("source_revision_config")) != "" {
			t.Errorf("%d: made %s of %s", i, made.text, read.text)
		}
	}
	if got := listed(t, f.call(t, "GET", path+"/revisions", nil), "id"); len(got) != 5 {
		t.Errorf("got %d revisions, want 5", len(got))
	}
	wantError(t, f.call(t, "POST", path+"/revisions", object{"name": "other"}), http.StatusBadRequest)
	wantError(t, f.call(t, "POST", path+"/revisions", object{"secrets": 1}), http.StatusUnprocessableEntity)
	f.call(t, "DELETE", path, nil)
	wantDetail(t, f.call(t, "POST", path+"/revisions", nil), http.StatusConflict, "Deployment ID "+created.id("id")+" is being deleted.")
}

func TestARevisionIsCancelled(t *testing.T) {
	t.Parallel()
	rule(t, "POST …/revisions/{revision_id}/cancel: 200, and the revision is INTERRUPTED at once; what has ended otherwise is a 409.")
	f := setUp(t)
	path, created := f.create(t, fromImage("weather"))
	first := created.id("latest_revision_id")
	queued := f.call(t, "PATCH", path, object{"secrets": []any{}}).id("latest_revision_id")
	for range 2 {
		for _, id := range []string{queued, first} {
			cancelled := f.call(t, "POST", path+"/revisions/"+id+"/cancel", nil)
			wantStatus(t, cancelled, http.StatusOK)
			if cancelled.id("status") != "INTERRUPTED" || cancelled.id("status_reason") != "CANCELLED" || cancelled.id("id") != id || cancelled.id("phase_timestamps", "INTERRUPTED") == "" {
				t.Errorf("got %s", cancelled.text)
			}
		}
	}
	f.settleCancelled(t, created.id("id"))
	third := f.call(t, "POST", path+"/revisions", nil)
	if third.id("status") != "CREATING" {
		t.Errorf("the next revision is %s, want it to go at once", third.id("status"))
	}
	f.deploy(t, created.id("id"))
	wantDetail(t, f.call(t, "POST", path+"/revisions/"+third.id("id")+"/cancel", nil), http.StatusConflict,
		"Revision ID "+third.id("id")+" has ended: it is DEPLOYED.")
	f.call(t, "DELETE", path, nil)
	wantError(t, f.call(t, "POST", path+"/revisions/"+third.id("id")+"/cancel", nil), http.StatusConflict)
}

// settleCancelled passes the slot on from a cancelled revision, as its rollout does.
func (f *fixture) settleCancelled(t *testing.T, deploymentID string) {
	t.Helper()
	d, err := f.deployments.Get(t.Context(), deployment.Ref{Workspace: f.own.workspace, Deployment: deploymentID})
	check.Must(t, err)
	check.Must(t, f.deployments.PassOn(t.Context(), d))
}

// TestValidateOnlyChangesNothing sends creates and PATCHes that would and would not succeed.
func TestValidateOnlyChangesNothing(t *testing.T) {
	t.Parallel()
	rule(t, "`validate_only=true` on create and PATCH: every check, the Deployment as it would be, and no change.")
	f := setUp(t)
	planned := f.call(t, "POST", "/v2/deployments?validate_only=true", fromGit("weather"))
	wantStatus(t, planned, http.StatusOK)
	wantShape(t, planned, deploymentShape)
	wantError(t, f.call(t, "GET", "/v2/deployments/"+planned.id("id"), nil), http.StatusNotFound)
	wantError(t, f.call(t, "POST", "/v2/deployments?validate_only=true", with(fromGit("weather"), "source_config.listener_id", someID)), http.StatusBadRequest)
	wantError(t, f.call(t, "POST", "/v2/deployments?validate_only=true", object{}), http.StatusUnprocessableEntity)
	f.wantNothing(t)
	path, created := f.create(t, fromGit("weather"))
	wantError(t, f.call(t, "POST", "/v2/deployments?validate_only=true", fromGit("weather")), http.StatusConflict)
	for _, c := range []struct {
		patch    object
		revision bool
	}{
		{object{"source_config": object{"build_on_push": true}}, false},
		{object{"source_revision_config": object{"repo_ref": "dev"}}, true},
		{object{"secrets": []any{object{"name": "A", "value": "b"}}}, true},
	} {
		would := f.call(t, "PATCH", path+"?validate_only=true", c.patch)
		wantStatus(t, would, http.StatusOK)
		wantShape(t, would, deploymentShape)
		if got := would.id("latest_revision_id") != created.id("latest_revision_id"); got != c.revision {
			t.Errorf("%v would make a revision: %v", c.patch, got)
		}
		f.wantUnchanged(t, path, created)
		did := f.call(t, "PATCH", path, c.patch)
		for _, member := range []string{"secrets", "source_config", "source_revision_config", "status"} {
			if diff := cmp.Diff(would.member(member), did.member(member)); diff != "" {
				t.Errorf("%s (-planned +done):\n%s", member, diff)
			}
		}
		f.call(t, "DELETE", path, nil)
		path, created = f.create(t, fromGit("weather"))
	}
	starts := f.engine.starts.Load()
	wantError(t, f.call(t, "PATCH", path+"?validate_only=true", object{"name": "other"}), http.StatusBadRequest)
	wantError(t, f.call(t, "PATCH", path+"?validate_only=yes!", object{}), http.StatusUnprocessableEntity)
	if f.engine.starts.Load() != starts {
		t.Error("something was started")
	}
}

// TestARevisionIsWaitedFor reads with ?wait while the revision goes on.
func TestARevisionIsWaitedFor(t *testing.T) {
	t.Parallel()
	rule(t, "GET …/revisions/{revision_id}?wait=<s> answers when the revision has ended, or when the time is up; never later than 25 s.")
	f := setUp(t)
	path, created := f.create(t, fromImage("weather"))
	first := created.id("latest_revision_id")
	read := func(id, query string) (response, time.Duration) {
		began := time.Now()
		answer := f.call(t, "GET", path+"/revisions/"+id+query, nil)
		wantStatus(t, answer, http.StatusOK)
		return answer, time.Since(began)
	}
	if answer, took := read(first, "?wait=1"); answer.id("status") != "CREATING" || took < time.Second {
		t.Errorf("when the time is up: got %s after %s", answer.id("status"), took)
	}
	if answer, _ := read(first, "?wait=0"); answer.id("status") != "CREATING" {
		t.Errorf("without waiting: got %s", answer.id("status"))
	}
	waiting := make(chan response, 1)
	wait := func(id string) {
		go func() {
			answer, took := read(id, "?wait=3600")
			if took > 20*time.Second {
				t.Errorf("the end was noticed after %s", took)
			}
			waiting <- answer
		}()
	}
	wait(first)
	f.deploy(t, created.id("id"))
	if answer := <-waiting; answer.id("status") != "DEPLOYED" {
		t.Errorf("after the rollout: got %s", answer.text)
	}
	if answer, took := read(first, "?wait=20"); answer.id("status") != "DEPLOYED" || took > 10*time.Second {
		t.Errorf("of one that has ended: got %s after %s", answer.id("status"), took)
	}
	// A revision that a newer one supersedes in the queue is not itself written.
	f.call(t, "POST", path+"/revisions", nil)
	queued := f.call(t, "POST", path+"/revisions", nil).id("id")
	wait(queued)
	f.call(t, "POST", path+"/revisions", nil)
	f.deploy(t, created.id("id"))
	if answer := <-waiting; answer.id("status") != "SKIPPED" || answer.id("status_reason") != "SUPERSEDED" {
		t.Errorf("after it was superseded: got %s", answer.text)
	}
	for _, bad := range []string{"-1", "x", "3601"} {
		wantError(t, f.call(t, "GET", path+"/revisions/"+first+"?wait="+bad, nil), http.StatusUnprocessableEntity)
	}
	wantError(t, f.call(t, "GET", path+"/revisions/"+unknownID+"?wait=20", nil), http.StatusNotFound)
}

func TestAWaitEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	rule(t, "GET …/revisions/{revision_id}?wait=<s> answers when the revision has ended, or when the time is up; never later than 25 s.")
	f := setUp(t)
	_, created := f.create(t, fromImage("weather"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ref := deployment.Ref{Workspace: f.own.workspace, Deployment: created.id("id")}.Revision(created.id("latest_revision_id"))
	if r, err := f.deployments.Await(ctx, ref, time.Hour); err == nil {
		t.Errorf("got %v, want an error", r)
	}
}

// TestPhasesHaveTimes carries a revision to its end.
func TestPhasesHaveTimes(t *testing.T) {
	t.Parallel()
	rule(t, "Revision: `status_reason`, `status_message` and `phase_timestamps` say why and since when.")
	f := setUp(t)
	path, created := f.create(t, fromImage("weather"))
	ref := deployment.Ref{Workspace: f.own.workspace, Deployment: created.id("id")}
	f.deploy(t, created.id("id"))
	read := f.call(t, "GET", path+"/revisions/"+created.id("latest_revision_id"), nil)
	before := ""
	for _, status := range []string{"CREATING", "AWAITING_DEPLOY", "DEPLOYING", "DEPLOYED"} {
		at := read.id("phase_timestamps", status)
		if at == "" || at < before {
			t.Errorf("%s since %q, the status before since %q", status, at, before)
		}
		before = at
	}
	if phases := read.member("phase_timestamps").(map[string]any); len(phases) != 4 {
		t.Errorf("got %v", phases)
	}
	second := f.call(t, "POST", path+"/revisions", nil).id("id")
	d, err := f.deployments.Get(t.Context(), ref)
	check.Must(t, err)
	_, r, err := f.deployments.GetRevision(t.Context(), ref.Revision(second))
	check.Must(t, err)
	check.Must(t, f.deployments.Fail(t.Context(), d, r, "REASON", "It failed because."))
	failed := f.call(t, "GET", path+"/revisions/"+second, nil)
	if failed.id("status") != "CREATE_FAILED" || failed.id("status_reason") != "REASON" || failed.id("status_message") != "It failed because." || failed.id("phase_timestamps", "CREATE_FAILED") == "" {
		t.Errorf("got %s", failed.text)
	}
}

// TestSecretsAreRedactedOnDemand sends the redaction mark back.
func TestSecretsAreRedactedOnDemand(t *testing.T) {
	t.Parallel()
	rule(t, "`secrets` are shown to those who may change them, unless the server or the role redacts them; the mark sent back means unchanged.")
	f := setUpWith(t, func(_ *deployment.Config, c *controlplane.Config) { c.RedactSecrets = true })
	path, created := f.create(t, with(fromGit("weather"), "secrets", []any{object{"name": "A", "value": "open"}, object{"name": "B", "value": "sesame"}}))
	for _, answer := range []response{created, f.call(t, "GET", path, nil), f.call(t, "GET", "/v2/deployments", nil), f.call(t, "PATCH", path, object{})} {
		if text := string(answer.text); strings.Contains(text, "open") || !strings.Contains(text, `{"name":"B","value":"[redacted]"}`) {
			t.Errorf("%s answered %s", answer.Request.Method, text)
		}
	}
	values := func() []deployment.Secret {
		t.Helper()
		d, err := f.deployments.Get(t.Context(), deployment.Ref{Workspace: f.own.workspace, Deployment: created.id("id")})
		check.Must(t, err)
		opened, err := f.deployments.Secrets(t.Context(), d.Ref, d.Secrets)
		check.Must(t, err)
		return opened
	}
	wantStatus(t, f.call(t, "PATCH", path, object{"secrets": f.call(t, "GET", path, nil).member("secrets")}), http.StatusOK)
	if diff := cmp.Diff([]deployment.Secret{{Name: "A", Value: "open"}, {Name: "B", Value: "sesame"}}, values()); diff != "" {
		t.Errorf("after the mark (-want +got):\n%s", diff)
	}
	wantStatus(t, f.call(t, "PATCH", path, object{"secrets": []any{object{"name": "B", "value": deployment.Redacted}, object{"name": "C", "value": "new"}}}), http.StatusOK)
	if diff := cmp.Diff([]deployment.Secret{{Name: "B", Value: "sesame"}, {Name: "C", Value: "new"}}, values()); diff != "" {
		t.Errorf("after a change (-want +got):\n%s", diff)
	}
	wantStatus(t, f.call(t, "PATCH", path, object{"secrets": []any{object{"name": "C", "value": deployment.Redacted}, object{"name": "B", "value": "changed"}}}), http.StatusOK)
	if diff := cmp.Diff([]deployment.Secret{{Name: "C", Value: "new"}, {Name: "B", Value: "changed"}}, values()); diff != "" {
		t.Errorf("after one of each (-want +got):\n%s", diff)
	}
	const detail = "secrets[0].value of D stands for a value that is not shown, and there is none. Send the value."
	lost := []any{object{"name": "D", "value": deployment.Redacted}}
	wantDetail(t, f.call(t, "PATCH", path, object{"secrets": lost}), http.StatusBadRequest, detail)
	wantDetail(t, f.call(t, "POST", "/v2/deployments", with(fromGit("other"), "secrets", lost)), http.StatusBadRequest, detail)
}

// TestImageVersionIsThatOfTheNewestRevision updates the server in between.
func TestImageVersionIsThatOfTheNewestRevision(t *testing.T) {
	t.Parallel()
	rule(t, "Deployment "+imageVersion)
	config := deployment.Config{}
	f := setUpWith(t, func(c *deployment.Config, _ *controlplane.Config) {
		c.Version = "1.0"
		config = *c
	})
	path, created := f.create(t, fromGit("weather"))
	config.Version, config.Now = "1.1", clock.System
	if _, err := deployment.NewStore(config).Patch(t.Context(), deployment.Ref{Workspace: f.own.workspace, Deployment: created.id("id")},
		deployment.Patch{RevisionConfig: revision.Config{RepoRef: new("dev")}}); err != nil {
		t.Fatal(err)
	}
	read := f.call(t, "GET", path, nil)
	if created.member("image_version") != "1.0" || read.member("image_version") != "1.1" {
		t.Errorf("got %v, then %v", created.member("image_version"), read.member("image_version"))
	}
}
