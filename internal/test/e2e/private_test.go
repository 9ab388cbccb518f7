package e2e_test

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/control/integration/githubtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

const (
	hookPath      = "/v1/integrations/github/webhook"
	webhookSecret = "the-secret-of-the-webhook"
)

// gitHub is a GitHub with an installation of the server's App at acme, whose only repository is
// private.
type gitHub struct {
	*githubtest.Server
	server *server
	on     *local
	repo   *repository
	// url is the URL of the repository.
	url string
}

// newGitHub starts a GitHub, and a server with an App there.
func newGitHub(t *testing.T) *gitHub {
	t.Helper()
	h := &gitHub{Server: githubtest.New(t, time.Now), repo: agentRepository(t)}
	h.url = h.URL + "/acme/agent"
	h.Install(githubtest.Installation{
		ID: 77, Account: "acme", AccountID: 500, Repositories: []githubtest.Repository{{ID: 11, Owner: "acme", Name: "agent", DefaultBranch: "main"}},
	})
	h.repo.git(t, "clone", "--quiet", "--bare", h.repo.dir, h.bare())
	app, err := json.Marshal(map[string]any{
		"app_id": githubtest.AppID, "slug": githubtest.Slug, "client_id": githubtest.ClientID, "client_secret": githubtest.ClientSecret,
		"private_key": githubtest.PrivateKey(), "web_url": h.URL, "api_url": h.APIURL(), "webhook_secrets": []string{webhookSecret},
	})
	check.Must(t, err)
	file := filepath.Join(t.TempDir(), "app.json")
	check.Must(t, os.WriteFile(file, app, 0o600))
	trust := h.Trust(t)
	h.on = newLocal(t.TempDir(), "--verbose", "--private-addresses", "--github-app", file)
	h.on.env = []string{"SSL_CERT_FILE=" + trust, "GIT_SSL_CAINFO=" + trust}
	h.server = startServer(t, h.on)
	return h
}

func (h *gitHub) bare() string { return filepath.Join(h.Repos, "acme", "agent.git") }

// connect installs the App in the way of a person in a browser, and returns the id of the
// integration.
func (h *gitHub) connect(t *testing.T) string {
	t.Helper()
	var link struct {
		URL string `json:"install_url"`
	}
	h.server.call(t, http.StatusOK, "POST", "/v2/integrations/github/installation-link", nil, &link)
	at, err := url.Parse(link.URL)
	check.Must(t, err)
	owner := githubtest.User{ID: 1, Login: "ada", Roles: map[string]string{"acme": "admin"}}
	back := url.Values{"state": {at.Query().Get("state")}, "code": {h.Consent(owner)}, "installation_id": {"77"}}
	for _, method := range []string{"GET", "POST"} { // the page asks, the button answers
		request, err := http.NewRequestWithContext(t.Context(), method, h.server.BaseURL+"/v2/integrations/github/callback?"+back.Encode(), http.NoBody)
		check.Must(t, err)
		answer, err := http.DefaultClient.Do(request)
		check.Must(t, err)
		page, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s of the callback: %d %s (%v)", method, answer.StatusCode, page, err)
		}
	}
	var list []struct {
		ID string `json:"id"`
	}
	h.server.call(t, http.StatusOK, "GET", "/v1/integrations/github/install", nil, &list)
	if len(list) != 1 {
		t.Fatalf("got %v", list)
	}
	return list[0].ID
}

// private returns the body that creates a deployment of the private repository, which is built
// on pushes.
func (h *gitHub) private(integrationID string) map[string]any {
	body := creation(h.url, "main")
	config := map[string]any{"repo_url": h.url, "build_on_push": true}
	if integrationID != "" {
		config["integration_id"] = integrationID
	}
	body["source_config"] = config
	return body
}

// change commits a version of the agent to the branch main and pushes it, and returns the
// previous and the new commit.
func (h *gitHub) change(t *testing.T, version string) (before, after string) {
	t.Helper()
	before = h.repo.git(t, "rev-parse", "HEAD")
	h.repo.program(t, version)
	after = h.repo.commit(t)
	h.repo.git(t, "push", "--quiet", h.bare(), "main")
	return before, after
}

// event returns the payload of a push to main.
func (h *gitHub) event(before, after string) map[string]any {
	return map[string]any{
		"ref": "refs/heads/main", "before": before, "after": after, "created": false, "deleted": false, "installation": map[string]any{"id": 77},
		"repository": map[string]any{"id": 11, "clone_url": h.url + ".git", "html_url": h.url},
	}
}

// deliver sends a push in the way of GitHub, signed with a secret, and expects a status.
func (h *gitHub) deliver(t *testing.T, status int, id, secret string, event map[string]any) {
	t.Helper()
	h.tell(t, status, "push", id, secret, event)
}

func (h *gitHub) tell(t *testing.T, status int, name, id, secret string, event map[string]any) {
	t.Helper()
	h.post(t, status, hookPath, name, id, secret, event)
}

func (h *gitHub) post(t *testing.T, status int, path, name, id, secret string, event map[string]any) {
	t.Helper()
	text, err := json.Marshal(event)
	check.Must(t, err)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(text)
	h.server.call(t, status, "POST", path, string(text), nil, "X-Api-Key", "", "X-Tenant-Id", "",
		"X-GitHub-Event", name, "X-GitHub-Delivery", id, "X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
}

// statuses returns the statuses of a deployment's revisions, newest first.
func (d *deployment) statuses(t *testing.T) string {
	t.Helper()
	var list struct{ Resources []revisionBody }
	d.server.call(t, http.StatusOK, "GET", d.path+"/revisions?limit=100", nil, &list)
	var all []string
	for _, r := range list.Resources {
		all = append(all, r.Status)
	}
	return strings.Join(all, " ")
}

// TestAPrivateRepositoryIsDeployedAndFollowsPushes goes from the installation of the App to a
// revision that a push has made.
func TestAPrivateRepositoryIsDeployedAndFollowsPushes(t *testing.T) {
	t.Parallel()
	h := newGitHub(t)
	integration := h.connect(t)
	var d *deployment
	first := ""
	story(t,
		step{"without the integration the repository cannot be reached", func(t *testing.T) {
			public, created := h.server.create(t, h.private(""))
			public.awaitFailed(t, value(created.LatestRevision), "BUILD_FAILED", "REPOSITORY_UNREACHABLE")
			h.server.call(t, http.StatusNoContent, "DELETE", public.path, nil, nil)
		}},
		step{"with it the clone uses a token that GitHub has made for this repository alone", func(t *testing.T) {
			var created deploymentBody
			d, created = h.server.create(t, h.private(integration))
			first = value(created.LatestRevision)
			got := d.awaitDeployed(t, first)
			if want := h.repo.git(t, "rev-parse", "HEAD"); value(got.Config.CommitSHA) != want {
				t.Errorf("built %s, want %s", value(got.Config.CommitSHA), want)
			}
			d.expectAnswer(t, firstWords)
		}},
		step{"a push that is not signed, or not by GitHub, does nothing", func(t *testing.T) {
			head := h.repo.git(t, "rev-parse", "HEAD")
			h.deliver(t, http.StatusUnauthorized, rand.Text(), "another-secret-of-sixteen", h.event(head, head))
			h.deliver(t, http.StatusUnauthorized, rand.Text(), "", h.event(head, head))
		}},
		step{"nor does one of a tag or of a branch that is deleted or another", func(t *testing.T) {
			head, none := h.repo.git(t, "rev-parse", "HEAD"), strings.Repeat("0", 40)
			for _, change := range []map[string]any{
				{"ref": "refs/tags/v1"}, {"ref": "refs/heads/next"}, {"deleted": true, "after": none},
			} {
				event := h.event(head, head)
				maps.Copy(event, change)
				h.deliver(t, http.StatusAccepted, rand.Text(), webhookSecret, event)
			}
			if got := d.statuses(t); got != "DEPLOYED" {
				t.Errorf("the revisions are %s", got)
			}
		}},
		step{"a signed push makes a revision, once, which is served", func(t *testing.T) {
			before, after := h.change(t, "v2")
			for range 2 {
				h.deliver(t, http.StatusAccepted, "the-same", webhookSecret, h.event(before, after))
			}
			second := value(d.get(t).LatestRevision)
			if got := d.awaitDeployed(t, second); value(got.Config.CommitSHA) != after || second == first {
				t.Errorf("revision %s was built of %s, want a new one of %s", second, value(got.Config.CommitSHA), after)
			}
			if got := d.statuses(t); got != "DEPLOYED DEPLOYED" {
				t.Errorf("the revisions are %s", got)
			}
			d.expectAnswer(t, secondWords)
		}},
		step{"so does a push to the hook of the deployment alone, and nobody else's", func(t *testing.T) {
			var hook struct{ URL, Secret string }
			h.server.call(t, http.StatusOK, "GET", d.path+"/push-hook", nil, &hook)
			path, found := strings.CutPrefix(hook.URL, h.server.BaseURL)
			if !found {
				t.Fatalf("the hook is at %s", hook.URL)
			}
			before, after := h.change(t, "v1")
			unknown := path[:strings.LastIndex(path, "/")+1] + "0197a000-0000-7000-8000-0000000000d1"
			h.post(t, http.StatusUnauthorized, unknown, "push", rand.Text(), hook.Secret, h.event(before, after))
			h.post(t, http.StatusUnauthorized, path, "push", rand.Text(), webhookSecret, h.event(before, after))
			h.post(t, http.StatusAccepted, path, "push", rand.Text(), hook.Secret, h.event(before, after))
			third := value(d.get(t).LatestRevision)
			if got := d.awaitDeployed(t, third); value(got.Config.CommitSHA) != after {
				t.Errorf("revision %s was built of %s, want %s", third, value(got.Config.CommitSHA), after)
			}
			if got := d.statuses(t); got != "DEPLOYED DEPLOYED DEPLOYED" {
				t.Errorf("the revisions are %s", got)
			}
			d.expectAnswer(t, firstWords)
		}},
		step{"a burst of pushes ends with the newest", func(t *testing.T) {
			last := ""
			for range 5 {
				var before string
				before, last = h.change(t, "v2")
				h.deliver(t, http.StatusAccepted, rand.Text(), webhookSecret, h.event(before, last))
			}
			newest := value(d.get(t).LatestRevision)
			if got := d.awaitDeployed(t, newest); value(got.Config.CommitSHA) != last {
				t.Errorf("built %s, want %s", value(got.Config.CommitSHA), last)
			}
			all := d.statuses(t)
			if done, passed := strings.Count(all, "DEPLOYED"), strings.Count(all, "SKIPPED"); done+passed != 8 || passed == 0 {
				t.Errorf("the revisions are %s", all)
			}
			d.expectAnswer(t, secondWords)
		}},
		step{"an installation that is suspended says so", func(t *testing.T) {
			h.Install(githubtest.Installation{ID: 77, Account: "acme", Suspended: true})
			h.tell(t, http.StatusAccepted, "installation", rand.Text(), webhookSecret, map[string]any{"action": "suspend", "installation": map[string]any{"id": 77}})
			d.awaitFailed(t, d.patch(t, "main"), "BUILD_FAILED", "REPOSITORY_UNREACHABLE", "installation of acme is suspended", "Resume it")
			d.expectAnswer(t, secondWords)
		}},
		step{"the server's directory and log hold none of the secrets", func(t *testing.T) {
			expectNowhere(t, h.on, append(h.Secrets(), webhookSecret)...)
		}},
	)
}
