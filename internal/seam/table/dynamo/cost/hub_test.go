//go:build cost

package cost_test

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/control/integration/githubtest"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/test/check"
)

// hubSecret signs the hub's messages about the App's installations.
const hubSecret = "the-secret-of-the-webhook"

// hub is a GitHub with an installation of the stack's App at acme.
type hub struct {
	*githubtest.Server
	// app and trust are the files with the App and with the server's certificate.
	app, trust string
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{Server: githubtest.New(t, time.Now), app: filepath.Join(t.TempDir(), "app.json")}
	h.trust = h.Trust(t)
	h.atAcme()
	app, err := json.Marshal(map[string]any{
		"app_id": githubtest.AppID, "slug": githubtest.Slug, "client_id": githubtest.ClientID, "client_secret": githubtest.ClientSecret,
		"private_key": githubtest.PrivateKey(), "web_url": h.URL, "api_url": h.APIURL(), "webhook_secrets": []string{hubSecret},
	})
	check.Must(t, err)
	check.Must(t, os.WriteFile(h.app, app, 0o600))
	return h
}

// atAcme installs the App.
func (h *hub) atAcme() {
	h.Install(githubtest.Installation{
		ID: 77, Account: "acme", AccountID: 500, Repositories: []githubtest.Repository{{ID: 11, Owner: "acme", Name: "agent", DefaultBranch: "main"}},
	})
}

// url is the address of the hub's repository.
func (h *hub) url() string { return h.URL + "/acme/agent" }

// mirror makes the hub's repository a copy of the stacks' repository.
func (h *hub) mirror(t *testing.T) {
	t.Helper()
	check.Must(t, os.MkdirAll(filepath.Join(h.Repos, "acme"), 0o700))
	git(t, h.Repos, "clone", "--quiet", "--bare", repository(), filepath.Join("acme", "agent.git"))
}

const consent = "?state={state}&code={code}&installation_id=77"

// hubSteps are about the ways to reach repositories, and about revisions of a deployment of
// such a repository.
var hubSteps = []step{
	{operation: "CreateGitCredential", body: `{"host": "git.example.com", "user": "deploy", "token": "example"}`, keep: "integration_id=id"},
	{operation: "ListGitCredentials"},
	{operation: "GetGitCredential"},
	{operation: "PatchGitCredential", body: `{"token": "another"}`},
	{operation: "DeleteGitCredential"},

	{operation: "CreateInstallationLink", keep: "install_url=install_url"},
	{operation: "AskAboutInstallation", query: consent, before: (*stack).consent},
	{operation: "ConfirmInstallation", query: consent},
	{operation: "ListGithubIntegrations", keep: "integration_id=0.id"},
	{operation: "ListGithubRepositories"},
	{operation: "ListInstallations"},
	{operation: "GetInstallation"},
	{operation: "ListInstallationRepositories"},
	{operation: "ListForgeGithubIntegrations"},
	{operation: "ListForgeGithubRepositories"},
	{operation: "ListForgeInstallations"},
	{operation: "GetForgeInstallation"},
	{operation: "ListForgeInstallationRepositories"},

	{operation: "GetPushHook", keep: "secret=secret", before: (*stack).connect},
	{operation: "ReceivePushHook", body: "{push}", headers: signedWith("secret"), after: (*stack).rolledOut},
	{operation: "ReceiveGithubWebhook", body: "{push}", headers: signedWith("app_secret"), after: (*stack).rolledOut},
	{operation: "CreateRevision", body: `{}`, after: (*stack).rolledOut},
	{operation: "RollBackToRevision", after: (*stack).rolledOut},
	{operation: "RedeployRevision", after: (*stack).rolledOut},
	{operation: "PatchDeploymentTier", body: `{"compute_tier": "SERVERLESS_M"}`, after: (*stack).rolledOut},
	{operation: "PatchDeploymentResourceTiers", body: `{"compute_tier": "SERVERLESS_S"}`, after: (*stack).rolledOut},
	{operation: "PromoteRevision", before: (*stack).tryOut, after: (*stack).promoted},
	{operation: "CreateSecret", body: `{"name": "{secret_name}", "data": {"api-key": "example"}}`},
	{operation: "ListSecrets"},
	{operation: "GetSecret", before: (*stack).refer},
	{operation: "PatchSecret", body: `{"data": {"api-key": "another"}}`, after: (*stack).rest},
	{operation: "RestartDeployment", after: (*stack).rest},
	{operation: "UndeleteDeployment", before: (*stack).deleteForNow, after: (*stack).rolledOut},
	{operation: "DeleteDeployments", query: "?deployment_ids={deployment_id}", after: (*stack).gone},
	{operation: "DeleteSecret"},
	{operation: "DeleteInstallation"},
	{operation: "CreateForgeInstallationLink", keep: "install_url=install_url"},
	{operation: "DeleteForgeInstallation", before: (*stack).install},
}

// consent makes a user allow the request of the link.
func (s *stack) consent() {
	s.t.Helper()
	at, err := url.Parse(s.kept["install_url"])
	check.Must(s.t, err)
	s.kept["state"] = url.QueryEscape(at.Query().Get("state"))
	s.kept["code"] = s.hub.Consent(githubtest.User{ID: 1, Login: "ada", Roles: map[string]string{"acme": "admin"}})
}

// install installs the App again, and connects the installation by the last link.
func (s *stack) install() {
	s.t.Helper()
	s.hub.atAcme()
	s.consent()
	s.call("POST", s.fill("/v2/integrations/github/callback"+consent), nil, nil)
	var installed []struct{ ID string }
	s.call("GET", "/v1/integrations/github/install", nil, &installed)
	if len(installed) != 1 {
		s.t.Fatalf("there are %d installations", len(installed))
	}
	s.kept["integration_id"] = installed[0].ID
}

// tryOut makes a revision that stays a canary for longer than the test takes.
func (s *stack) tryOut() {
	s.t.Helper()
	address := s.fill("/v2/deployments/{deployment_id}")
	s.call("PATCH", address, body{"canary_percent": 50, "canary_seconds": 3600}, nil)
	s.call("POST", address+"/revisions", body{}, nil)
	s.kept["revision_id"] = s.latest()
	s.until("the revision is a canary", func() bool {
		return s.text(keys.Revision(s.TenantID, s.kept["deployment_id"], s.kept["revision_id"]), "reason") == "CANARY"
	})
}

// deleteForNow deletes the deployment with a recovery window, and waits until it is stopped.
func (s *stack) deleteForNow() {
	s.t.Helper()
	s.call("DELETE", s.fill("/v2/deployments/{deployment_id}?recovery_window_seconds=3600"), nil, nil)
	s.settle()
}

// promoted waits until the canary is deployed, and makes sure that no further revision becomes
// a canary.
func (s *stack) promoted() {
	s.t.Helper()
	s.rolledOut()
	s.call("PATCH", s.fill("/v2/deployments/{deployment_id}"), body{"canary_percent": 0}, nil)
	s.settle()
}

// refer makes the deployment use the secret.
func (s *stack) refer() {
	s.t.Helper()
	reference := body{"name": "API_KEY", "secret_name": s.kept["secret_name"], "secret_key": "api-key"}
	s.call("PATCH", s.fill("/v2/deployments/{deployment_id}"), body{"secret_references": []body{reference}}, nil)
	s.rolledOut()
}

// connect makes a deployment of the hub's repository, which is built on pushes.
func (s *stack) connect() {
	s.t.Helper()
	creation := s.creation("pushed")
	creation["source_config"] = body{"repo_url": s.hub.url(), "integration_id": s.kept["integration_id"], "build_on_push": true}
	id, revision := s.create(creation)
	s.kept["deployment_id"], s.kept["revision_id"] = id, revision
	s.awaitDeployed(id, revision)
	s.settle()
	push, err := json.Marshal(body{
		"ref": "refs/heads/main", "before": "1111111111111111111111111111111111111111", "after": "2222222222222222222222222222222222222222",
		"created": false, "deleted": false, "installation": body{"id": 77},
		"repository": body{"id": 11, "clone_url": s.hub.url() + ".git", "html_url": s.hub.url()},
	})
	check.Must(s.t, err)
	s.kept["push"], s.kept["app_secret"] = string(push), hubSecret
}

// signedWith returns the headers of GitHub's webhooks, signed with the secret that was kept
// under a name.
func signedWith(secret string) func(*stack, string) http.Header {
	return func(s *stack, body string) http.Header {
		mac := hmac.New(sha256.New, []byte(s.kept[secret]))
		mac.Write([]byte(body))
		return http.Header{
			"X-Github-Event": {"push"}, "X-Github-Delivery": {rand.Text()}, "X-Hub-Signature-256": {"sha256=" + hex.EncodeToString(mac.Sum(nil))},
		}
	}
}

// rolledOut waits until the newest revision of the deployment is deployed.
func (s *stack) rolledOut() {
	s.t.Helper()
	s.awaitDeployed(s.kept["deployment_id"], s.latest())
	s.settle()
}

func (s *stack) latest() string {
	s.t.Helper()
	var shown struct {
		Latest string `json:"latest_revision_id"`
	}
	s.call("GET", "/v2/deployments/"+s.kept["deployment_id"], nil, &shown)
	return shown.Latest
}

func (s *stack) gone() {
	s.t.Helper()
	key := keys.Deployment(s.TenantID, s.kept["deployment_id"])
	s.until("the deployment is gone", func() bool { return s.text(key, "status") == "" })
	s.settle()
}
