package e2e_test

import (
	"crypto/rand"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child/childtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestARepositoryOfAnyHostIsDeployedWithItsCredential has a git server that is not GitHub,
// whose only repository needs a user name and a token.
func TestARepositoryOfAnyHostIsDeployedWithItsCredential(t *testing.T) {
	t.Parallel()
	wrong, token, next := "wrong-"+rand.Text(), "token-"+rand.Text(), "next-"+rand.Text()
	root, repo := t.TempDir(), agentRepository(t)
	repo.git(t, "clone", "--quiet", "--bare", repo.dir, filepath.Join(root, "team", "agent.git"))
	var good atomic.Value
	good.Store(token)
	host := httptest.NewTLSServer(gitFor(t, root, func(user, password string) bool { return user == "deploy" && password == good.Load() }))
	t.Cleanup(host.Close)
	trust := filepath.Join(t.TempDir(), "host.pem")
	check.Must(t, os.WriteFile(trust, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: host.Certificate().Raw}), 0o644))
	if err := childtest.Open(filepath.Dir(trust)); err != nil { // git runs as users of workspaces
		t.Fatal(err)
	}
	on := newLocal(t.TempDir(), "--verbose", "--private-addresses") // the host is this machine
	on.env = append(on.env, "SSL_CERT_FILE="+trust, "GIT_SSL_CAINFO="+trust)
	s := startServer(t, on)
	url := host.URL + "/team/agent.git"
	credential := ""
	private := func(integration string) map[string]any {
		body := creation(url, "main")
		if integration != "" {
			body["source_config"] = map[string]any{"repo_url": url, "integration_id": integration}
		}
		return body
	}
	change := func(t *testing.T, token string) {
		t.Helper()
		s.call(t, http.StatusOK, "PATCH", "/v2/integrations/git/credentials/"+credential, map[string]any{"token": token}, nil)
	}
	var d *deployment
	story(t,
		step{"without a credential the repository cannot be reached", func(t *testing.T) {
			public, created := s.create(t, private(""))
			public.awaitFailed(t, value(created.LatestRevision), "BUILD_FAILED", "REPOSITORY_UNREACHABLE")
		}},
		step{"nor with a token that the host does not take", func(t *testing.T) {
			var made struct{ ID, Host string }
			address := strings.TrimPrefix(host.URL, "https://")
			s.call(t, http.StatusCreated, "POST", "/v2/integrations/git/credentials", map[string]any{"host": address, "user": "deploy", "token": wrong}, &made)
			if credential = made.ID; made.Host != address {
				t.Errorf("the credential is for %s", made.Host)
			}
			var created deploymentBody
			d, created = s.create(t, private(credential))
			d.awaitFailed(t, value(created.LatestRevision), "BUILD_FAILED", "REPOSITORY_UNREACHABLE")
		}},
		step{"with the right one the commit is built, deployed and answers", func(t *testing.T) {
			change(t, token)
			got := d.awaitDeployed(t, d.patch(t, "main"))
			if want := repo.git(t, "rev-parse", "HEAD"); value(got.Config.CommitSHA) != want {
				t.Errorf("built %s, want %s", value(got.Config.CommitSHA), want)
			}
			d.expectAnswer(t, firstWords)
		}},
		step{"a token that the host has replaced is replaced here, and counts for the next build", func(t *testing.T) {
			good.Store(next)
			d.awaitFailed(t, d.patch(t, "main"), "BUILD_FAILED", "REPOSITORY_UNREACHABLE")
			change(t, next)
			d.awaitDeployed(t, d.patch(t, "main"))
			d.expectAnswer(t, firstWords)
		}},
		step{"the server's directory and log hold none of the tokens", func(t *testing.T) { expectNowhere(t, on, wrong, token, next) }},
	)
}
