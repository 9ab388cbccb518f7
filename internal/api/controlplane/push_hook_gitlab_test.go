package controlplane_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/test/check"
)

// gitlabPushOf is the payload of GitLab's event for a push to a branch of a project.
func gitlabPushOf(project, branch string) object {
	return object{
		"object_kind": "push", "ref": "refs/heads/" + branch, "before": strings.Repeat("1", 40), "after": strings.Repeat("2", 40),
		"project":    object{"id": 15, "web_url": project, "git_http_url": project + ".git", "git_ssh_url": strings.Replace(project, "https://", "ssh://git@", 1) + ".git"},
		"repository": object{"name": "agent", "homepage": project},
	}
}

func TestGitLabTellsOfPushes(t *testing.T) {
	t.Parallel()
	rule(t, pushGitLab)
	f := setUpHub(t)
	const project = "https://git.test/team/agent"
	path, created := f.create(t, with(fromGit("weather"), "source_config.build_on_push", true))
	hook := f.call(t, "GET", path+"/push-hook", nil)
	at := strings.TrimPrefix(hook.id("url"), callbackBase)
	send := func(event string, body object, headers map[string]string) response {
		t.Helper()
		text, err := json.Marshal(body)
		check.Must(t, err)
		all := map[string]string{
			"X-Gitlab-Event": event, "X-Gitlab-Token": hook.id("secret"), "X-Gitlab-Event-UUID": id.New(clock.System()),
			"X-Gitlab-Webhook-UUID": id.New(clock.System()), "Idempotency-Key": id.New(clock.System()), "Content-Type": "application/json",
		}
		maps.Copy(all, headers)
		return f.send(t, "POST", at, string(text), all)
	}
	accepted := func(event string, body object, headers map[string]string) {
		t.Helper()
		answer := send(event, body, headers)
		wantStatus(t, answer, http.StatusAccepted)
		if answer.Header.Get("Idempotency-Replayed") != "" {
			t.Error("an answer was kept for whoever knows the key")
		}
	}
	for range 2 { // when GitLab sends the event again, only the key is the same
		accepted("Push Hook", gitlabPushOf(project, "main"), map[string]string{"Idempotency-Key": "one"})
	}
	f.wantRevisions(t, path, "QUEUED CREATING")
	for range 2 { // before version 17.4 there is no key
		accepted("Push Hook", gitlabPushOf(project, "main"), map[string]string{"Idempotency-Key": "", "X-Gitlab-Event-UUID": "two"})
	}
	accepted("Push Hook", gitlabPushOf(project, "main"), map[string]string{"X-Gitlab-Event-UUID": "two"})
	f.wantRevisions(t, path, "QUEUED QUEUED QUEUED CREATING")
	none := strings.Repeat("0", 40)
	accepted("Push Hook", gitlabPushOf(project, "next"), nil)
	accepted("Push Hook", gitlabPushOf("https://git.test/team/other", "main"), map[string]string{"Idempotency-Key": "three"})
	accepted("Push Hook", with(gitlabPushOf(project, "main"), "after", none), nil)
	accepted("Tag Push Hook", gitlabPushOf(project, "main"), nil)
	accepted("Merge Request Hook", object{"object_kind": "merge_request"}, nil)
	for _, headers := range []map[string]string{{"X-Gitlab-Token": ""}, {"X-Gitlab-Token": "another"}, {"X-Gitlab-Token": webhookSecret}} {
		wantStatus(t, send("Push Hook", gitlabPushOf(project, "main"), headers), http.StatusUnauthorized)
	}
	wantStatus(t, send("Push Hook", gitlabPushOf(project, "main"), map[string]string{"Idempotency-Key": "", "X-Gitlab-Event-UUID": ""}), http.StatusBadRequest)
	f.wantRevisions(t, path, "QUEUED QUEUED QUEUED CREATING")
	f.deploy(t, created.id("id"))
	f.wantRevisions(t, path, "QUEUED SKIPPED SKIPPED DEPLOYED")
	if strings.Contains(f.log.String(), hook.id("secret")) {
		t.Error("the log has the secret")
	}
}
