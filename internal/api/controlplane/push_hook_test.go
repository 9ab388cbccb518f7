package controlplane_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/test/check"
)

const hookPath = "/v1/integrations/github/webhook"

// pushOf is the payload of a push to a branch of a repository.
func pushOf(repository, branch string) object {
	return object{
		"ref": "refs/heads/" + branch, "before": strings.Repeat("1", 40), "after": strings.Repeat("2", 40), "created": false, "deleted": false,
		"repository": object{"id": 11, "clone_url": repository + ".git", "html_url": repository}, "installation": object{"id": 77},
	}
}

// delivery is a delivery of a push, signed with a secret, with an id of its own.
func delivery(t *testing.T, body any, secret string) (string, map[string]string) {
	t.Helper()
	text, err := json.Marshal(body)
	check.Must(t, err)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(text)
	return string(text), map[string]string{
		"X-GitHub-Event": "push", "X-GitHub-Delivery": id.New(clock.System()), "X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil)),
	}
}

// deliver sends a push of the App and returns the status.
func (f *hubFixture) deliver(t *testing.T, body any) int {
	t.Helper()
	text, headers := delivery(t, body, webhookSecret)
	return f.send(t, "POST", hookPath, text, headers).StatusCode
}

// revisions are the statuses of a deployment's revisions, newest first.
func (f *fixture) revisions(t *testing.T, path string) []string {
	t.Helper()
	var statuses []string
	for _, r := range f.call(t, "GET", path+"/revisions?limit=100", nil).member("resources").([]any) {
		statuses = append(statuses, r.(object)["status"].(string))
	}
	return statuses
}

func (f *fixture) wantRevisions(t *testing.T, path, want string) {
	t.Helper()
	if got := strings.Join(f.revisions(t, path), " "); got != want {
		t.Errorf("the revisions are %s, want %s", got, want)
	}
}

// onPush is a request for a deployment that is built on pushes to main of acme/agent.
func (f *hubFixture) onPush(name string) object {
	body := with(fromGit(name), "source_config.build_on_push", true)
	return with(body, "source_config.repo_url", f.hub.URL+"/acme/agent")
}

func TestAPushMakesARevision(t *testing.T) {
	t.Parallel()
	rule(t, pushBuilds)
	rule(t, pushOnce)
	rule(t, pushBurst)
	f := setUpHub(t)
	f.install(t)
	path, created := f.create(t, f.onPush("weather"))
	f.deploy(t, created.id("id"))
	agent := f.hub.URL + "/acme/agent"
	text, headers := delivery(t, pushOf(agent, "main"), webhookSecret)
	for _, base := range append(bases, bases...) {
		answer := f.send(t, "POST", base+hookPath, text, headers)
		if answer.StatusCode != http.StatusAccepted || len(answer.text) != 0 {
			t.Fatalf("got %d %s", answer.StatusCode, answer.text)
		}
	}
	f.wantRevisions(t, path, "CREATING DEPLOYED")
	now := f.call(t, "GET", path, nil)
	if now.member("source_revision_config", "repo_ref") != "main" || now.member("source_revision_config", "repo_commit_sha") != nil {
		t.Errorf("got %s", now.text)
	}
	creates := with(with(pushOf(agent, "main"), "created", true), "before", strings.Repeat("0", 40))
	for _, body := range []object{pushOf(agent, "main"), creates, pushOf(agent, "main")} {
		if got := f.deliver(t, body); got != http.StatusAccepted {
			t.Fatalf("got %d", got)
		}
	}
	f.wantRevisions(t, path, "QUEUED QUEUED QUEUED CREATING DEPLOYED")
	f.deploy(t, created.id("id"))
	f.wantRevisions(t, path, "QUEUED SKIPPED SKIPPED DEPLOYED DEPLOYED")
}

func TestPushesThatAreNotForADeployment(t *testing.T) {
	t.Parallel()
	rule(t, pushOther)
	f := setUpHub(t)
	f.install(t)
	path, _ := f.create(t, f.onPush("weather"))
	off, _ := f.create(t, with(f.onPush("off"), "source_config.build_on_push", false))
	agent := f.hub.URL + "/acme/agent"
	none := strings.Repeat("0", 40)
	for name, body := range map[string]object{
		"another branch":       pushOf(agent, "next"),
		"another repository":   pushOf(f.hub.URL+"/acme/other", "main"),
		"a tag":                with(pushOf(agent, "main"), "ref", "refs/tags/main"),
		"a branch is deleted":  with(with(pushOf(agent, "main"), "deleted", true), "after", none),
		"another installation": with(pushOf(agent, "main"), "installation.id", 78),
	} {
		if got := f.deliver(t, body); got != http.StatusAccepted {
			t.Errorf("%s: got %d", name, got)
		}
	}
	f.wantRevisions(t, path, "CREATING")
	patch := func(config object) { wantStatus(t, f.call(t, "PATCH", path, config), http.StatusOK) }
	build := func(branch string) { f.deliver(t, pushOf(agent, branch)) }
	patch(object{"source_config": object{"build_on_push": false}})
	build("main")
	f.wantRevisions(t, path, "CREATING")
	patch(object{"source_config": object{"build_on_push": true}})
	patch(object{"source_revision_config": object{"repo_ref": "next"}})
	build("main")
	f.wantRevisions(t, path, "QUEUED CREATING")
	build("next")
	f.wantRevisions(t, path, "QUEUED QUEUED CREATING")
	f.wantRevisions(t, off, "CREATING")
	wantStatus(t, f.call(t, "DELETE", path, nil), http.StatusNoContent)
	if got := f.deliver(t, pushOf(agent, "next")); got != http.StatusAccepted {
		t.Errorf("a push for a deleted deployment got %d", got)
	}
}

func TestDeliveriesThatAreNotSigned(t *testing.T) {
	t.Parallel()
	rule(t, pushSigned)
	f := setUpHub(t)
	f.install(t)
	path, _ := f.create(t, f.onPush("weather"))
	text, headers := delivery(t, pushOf(f.hub.URL+"/acme/agent", "main"), webhookSecret)
	_, guessed := delivery(t, pushOf(f.hub.URL+"/acme/agent", "main"), "another-secret-of-sixteen")
	for name, c := range map[string]struct {
		body      string
		signature string
	}{
		"no signature":           {text, ""},
		"another secret":         {text, guessed["X-Hub-Signature-256"]},
		"a space more":           {text + " ", headers["X-Hub-Signature-256"]},
		"no JSON":                {"{", headers["X-Hub-Signature-256"]},
		"an empty body":          {"", headers["X-Hub-Signature-256"]},
		"the other hash's form":  {text, strings.Replace(headers["X-Hub-Signature-256"], "sha256", "sha1", 1)},
		"not UTF-8, and nothing": {"\xff\xfe", headers["X-Hub-Signature-256"]},
	} {
		answer := f.send(t, "POST", hookPath, c.body, map[string]string{"X-GitHub-Event": "push", "X-GitHub-Delivery": "d", "X-Hub-Signature-256": c.signature})
		if answer.StatusCode != http.StatusUnauthorized || answer.member("detail") != "The signature is not valid." {
			t.Errorf("%s: got %d %s", name, answer.StatusCode, answer.text)
		}
	}
	large := f.send(t, "POST", hookPath, strings.Repeat(" ", 25<<20+1), headers)
	wantStatus(t, large, http.StatusRequestEntityTooLarge)
	f.wantRevisions(t, path, "CREATING")
	// The signature covers the body as it was sent: with its spaces, and with a size that other
	// bodies may not have.
	spaced := text + strings.Repeat(" ", 11<<20)
	mac := hmac.New(sha256.New, []byte(webhookSecret))
	mac.Write([]byte(spaced))
	headers["X-Hub-Signature-256"] = "sha256=" + hex.EncodeToString(mac.Sum(nil))
	wantStatus(t, f.send(t, "POST", hookPath, spaced, headers), http.StatusAccepted)
	f.wantRevisions(t, path, "QUEUED CREATING")
	if strings.Contains(f.log.String(), headers["X-Hub-Signature-256"]) {
		t.Error("the log has a signature")
	}
}

// TestAttackStrangersSendNoBody promises a large body and sends no byte of it: a caller without
// a signature, or with an unknown hook, is refused all the same.
func TestAttackStrangersSendNoBody(t *testing.T) {
	t.Parallel()
	f := setUpHub(t)
	_, signed := delivery(t, object{}, "a-secret-of-sixteen-or-more")
	unknown := "/v2/integrations/git/hooks/" + f.own.workspace + "/" + unknownID
	for name, c := range map[string]struct{ path, signature string }{
		"no signature": {hookPath, ""}, "no hexadecimal": {hookPath, "sha256=" + strings.Repeat("x", 64)}, "an unknown hook": {unknown, signed["X-Hub-Signature-256"]},
	} {
		body, never := io.Pipe()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL+c.path, body)
		check.Must(t, err)
		request.ContentLength = 25 << 20
		request.Header.Set("X-Hub-Signature-256", c.signature)
		answer, err := f.Client().Do(request)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: got %d", name, answer.StatusCode)
		}
		answer.Body.Close()
		never.Close()
	}
}

func TestTheHookOfOneDeployment(t *testing.T) {
	t.Parallel()
	rule(t, pushHookRule)
	f := setUpHub(t)
	request := with(fromGit("weather"), "source_config.build_on_push", true)
	path, _ := f.create(t, request)
	second, _ := f.create(t, with(request, "name", "second"))
	hook := f.call(t, "GET", path+"/push-hook", nil)
	wantStatus(t, hook, http.StatusOK)
	at, found := strings.CutPrefix(hook.id("url"), callbackBase)
	if !found {
		t.Fatalf("got %s", hook.text)
	}
	for _, base := range bases {
		text, headers := delivery(t, pushOf("https://git.test/team/agent", "main"), hook.id("secret"))
		wantStatus(t, f.send(t, "POST", base+at, text, headers), http.StatusAccepted)
		wantStatus(t, f.send(t, "POST", base+at, text, headers), http.StatusAccepted)
	}
	f.wantRevisions(t, path, "QUEUED QUEUED CREATING")
	text, headers := delivery(t, pushOf("https://git.test/team/agent", "main"), hook.id("secret"))
	for _, elsewhere := range []string{
		strings.Replace(f.call(t, "GET", second+"/push-hook", nil).id("url"), callbackBase, "", 1),
		strings.Replace(at, f.own.workspace, f.other.workspace, 1), hookPath,
	} {
		wantStatus(t, f.send(t, "POST", elsewhere, text, headers), http.StatusUnauthorized)
	}
	f.wantRevisions(t, second, "CREATING")
	f.wantRevisions(t, path, "QUEUED QUEUED CREATING")
}
