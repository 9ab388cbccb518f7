package controlplane_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// creations are the operations that make something in one transaction and settle their
// Idempotency-Key in the same transaction: a path and a body.
var creations = map[string]func(*stage) (path string, body any){
	"CreateDeployment": func(*stage) (string, any) { return "/v2/deployments", fromGit("weather") },
	"CreateRevision": func(s *stage) (string, any) {
		return s.deployment + "/revisions", object{"source_revision_config": object{"repo_ref": "dev"}}
	},
	"CreateListener":     func(*stage) (string, any) { return "/v2/listeners", newListener("cluster") },
	"CreateAuthProvider": func(s *stage) (string, any) { return "/v2/auth/providers", s.newProvider("mail") },
	"ImportAuthToken": func(*stage) (string, any) {
		return "/v2/auth/tokens/import", object{"provider_id": "calendar", "user_id": "bob", "access_token": "some-access"}
	},
	"CreateAgentConnection": func(s *stage) (string, any) {
		return "/v2/auth/agents/news/connections", object{"oauth_token_id": s.token, "user_id": "ada"}
	},
	"AddMember": func(*stage) (string, any) {
		return "/v2/workspaces/current/members", object{"user": "ada@example.com", "role": "viewer"}
	},
	"CreateTrustRule": func(*stage) (string, any) {
		return "/v2/workspaces/current/trust-rules", object{"issuer": "https://issuer.test", "role": "viewer", "claims": object{"repository_id": "8"}}
	},
	"CreateAPIKey": func(*stage) (string, any) {
		return "/v2/api-keys", object{"name": "ci", "role": "viewer"}
	},
	"CreateGitCredential": func(*stage) (string, any) { return "/v2/integrations/git/credentials", newCredential("git.test") },
	"CreateSecret":        func(*stage) (string, any) { return "/v2/secrets", object{"name": "s", "data": object{"k": "v"}} },
	"CreateWebhook":       func(*stage) (string, any) { return "/v2/webhooks", object{"url": "https://hooks.example.com/x"} },
}

// notSettled are the operations that do not belong to creations.
var notSettled = map[string]string{
	"CreatePushToken":             "keeps nothing, and its answer says no-store",
	"CreateInstallationLink":      "makes a link that lasts for minutes; another one does as well",
	"CreateForgeInstallationLink": "the same",
}

// TestCreationsSettleTheirKeys checks that the key is settled in the transaction of the
// creation: the request is answered again, even if the server died before it could keep the
// answer.
func TestCreationsSettleTheirKeys(t *testing.T) {
	t.Parallel()
	s := setUpAuth(t).stage(t)
	s.deployment, _ = s.create(t, fromGit("news"))
	found := map[string]bool{}
	paths, _ := s.send(t, "GET", "/openapi.json", nil, nil).member("paths").(map[string]any)
	for _, item := range paths {
		operation, _ := item.(map[string]any)["post"].(map[string]any)
		id, _ := operation["operationId"].(string)
		for _, verb := range []string{"Create", "Add", "Import"} {
			parameters, _ := operation["parameters"].([]any)
			for _, parameter := range parameters {
				if ref, _ := parameter.(map[string]any)["$ref"].(string); strings.HasPrefix(id, verb) && strings.HasSuffix(ref, "/idempotency_key") {
					found[id] = true
				}
			}
		}
	}
	for id, creation := range creations {
		if !found[id] {
			t.Errorf("%s takes no Idempotency-Key", id)
		}
		delete(found, id)
		path, body := creation(s)
		s.wantSettled(t, id, "POST", path, body)
	}
	for id := range notSettled {
		delete(found, id)
	}
	if len(found) > 0 {
		t.Errorf("these creations take an Idempotency-Key, and nothing says whether they settle it: %v", found)
	}
}

// wantSettled sends a request whose server dies before it can keep the answer, and sends it
// again.
func (s *stage) wantSettled(t *testing.T, id, method, path string, body any) {
	t.Helper()
	s.answers.Dead.Store(true)
	first := s.send(t, method, path, body, s.own.with(idempotencyKey, id))
	s.answers.Dead.Store(false)
	if first.StatusCode/100 != 2 {
		t.Errorf("%s: got %d %s", id, first.StatusCode, first.text)
		return
	}
	again := s.send(t, method, path, body, s.own.with(idempotencyKey, id))
	if again.Header.Get(replayed) != "true" {
		t.Errorf("%s: a repetition got %d %s", id, again.StatusCode, again.text)
	}
	if id == "CreateAPIKey" { // the answer is shown once
		wantStatus(t, again, http.StatusConflict)
		return
	}
	if diff := cmp.Diff(string(first.text), string(again.text)); diff != "" || first.StatusCode != again.StatusCode || first.Header.Get("ETag") != again.Header.Get("ETag") {
		t.Errorf("%s: %d %q, then %d %q (-first +again):\n%s", id, first.StatusCode, first.Header.Get("ETag"), again.StatusCode, again.Header.Get("ETag"), diff)
	}
}

// TestChangesThatMakeRevisionsSettleTheirKeys checks the same for changes.
func TestChangesThatMakeRevisionsSettleTheirKeys(t *testing.T) {
	t.Parallel()
	s := setUpAuth(t).stage(t)
	path, created := s.create(t, fromGit("news"))
	s.deployment = path
	s.deploy(t, created.id("id"))
	active := s.deployment + "/revisions/" + s.call(t, "GET", s.deployment, nil).id("active_revision_id")
	s.wantSettled(t, "PatchDeployment", "PATCH", s.deployment, object{"source_revision_config": object{"repo_ref": "dev"}})
	s.wantSettled(t, "PatchDeployment, which changes nothing", "PATCH", s.deployment, object{})
	s.wantSettled(t, "PatchDeploymentResourceTiers", "PATCH", s.deployment+"/resource-tiers", object{"compute_tier": "SERVERLESS_M"})
	s.wantSettled(t, "RedeployRevision", "POST", active+"/redeploy", nil)
	s.wantSettled(t, "RollBackToRevision", "POST", active+"/rollback", nil)
}
