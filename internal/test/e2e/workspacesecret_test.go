package e2e_test

import (
	"crypto/rand"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestASecretOfTheWorkspaceIsRotated gives its value to agents of two sources, and then
// another value: they get the new value without a revision, and their logs show neither value.
func TestASecretOfTheWorkspaceIsRotated(t *testing.T) {
	t.Parallel()
	on := newLocal(t.TempDir())
	s := startServer(t, on)
	first, second, third := "planted-"+rand.Text(), "planted-"+rand.Text(), "planted-"+rand.Text()
	s.call(t, http.StatusCreated, "POST", "/v2/secrets", map[string]any{"name": "search", "data": map[string]string{"api-key": first}}, nil)

	// Each agent sends its environment to this test, and prints it.
	start := newEnvironmentReceiver(t)
	repo := agentRepository(t)
	repo.branch(t, "noting", agentConfig().with("start", start.command()+`; echo "the key is $KEY"; exec ./agent`))
	references := []any{map[string]string{"name": "KEY", "secret_name": "search", "secret_key": "api-key"}}
	body := creation(repo.url(), "noting")
	body["secret_references"] = references
	fromGit, created := s.create(t, body)
	fromGit.awaitDeployed(t, value(created.LatestRevision))
	both := []*deployment{fromGit, s.upload(t, repo, "noting", references)}

	revisions := map[string]string{}
	for _, d := range both {
		revisions[d.ID] = value(d.get(t).LatestRevision)
		expectVariables(t, start.newestWith("SLIPWAY_DEPLOYMENT_ID="+d.ID), "KEY="+first)
	}
	has := func(d *deployment, value string) {
		t.Helper()
		eventually(t, "the agent has the value", func() (bool, any) {
			environment := start.newestWith("SLIPWAY_DEPLOYMENT_ID=" + d.ID)
			return strings.Contains("\n"+environment, "\nKEY="+value+"\n"), "it does not"
		})
		d.thread(t).wait(t, ask(askSF, fast)).Messages.expect(t, answered...)
	}
	var rotated struct {
		Restarted []string `json:"restarted_deployment_ids"`
	}
	rotate := func(value string, restart bool) {
		t.Helper()
		s.call(t, http.StatusOK, "PATCH", "/v2/secrets/search", map[string]any{"data": map[string]string{"api-key": value}, "restart": restart}, &rotated)
	}
	rotate(second, true)
	if want := []string{both[0].ID, both[1].ID}; !slices.Equal(rotated.Restarted, want) {
		t.Errorf("restarted are %v, want %v", rotated.Restarted, want)
	}
	for _, d := range both {
		if has(d, second); value(d.get(t).LatestRevision) != revisions[d.ID] {
			t.Error("the rotation made a revision")
		}
	}
	rotate(third, false)
	if len(rotated.Restarted) > 0 {
		t.Errorf("restarted are %v", rotated.Restarted)
	}
	for _, d := range both {
		s.call(t, http.StatusAccepted, "POST", d.path+"/restart", nil, nil)
		has(d, third)
	}
	start.forget()
	s.kill9(t)
	s.restart(t) // which starts the agents again
	for _, d := range both {
		has(d, third)
		eventually(t, "the log has all three, hidden", func() (bool, any) {
			log := s.call(t, http.StatusOK, "GET", d.path+"/revisions/"+revisions[d.ID]+"/logs?type=deploy&limit=1000", nil, nil).body
			for _, value := range []string{first, second, third} {
				if strings.Contains(string(log), value) {
					t.Fatalf("it shows %s: %s", value, log)
				}
			}
			return strings.Count(string(log), "the key is ***") >= 3, string(log)
		})
	}
	s.call(t, http.StatusConflict, "DELETE", "/v2/secrets/search", nil, nil)
	for _, d := range both {
		s.call(t, http.StatusNoContent, "DELETE", d.path, nil, nil)
	}
	eventually(t, "the secret can be deleted", func() (bool, any) {
		got, err := s.do(t.Context(), "DELETE", "/v2/secrets/search", nil)
		return err == nil && got.status == http.StatusNoContent, string(got.body)
	})
	s.call(t, http.StatusNotFound, "GET", "/v2/secrets/search", nil, nil)
}

// upload creates a deployment of the files of a branch, uploaded as a tarball, and waits until
// it is served.
func (s *server) upload(t *testing.T, repo *repository, branch string, references []any) *deployment {
	t.Helper()
	body := creation("", "")
	body["source"], body["source_config"], body["source_revision_config"] = "internal_source", map[string]any{}, map[string]any{}
	body["secret_references"] = references
	d, _ := s.create(t, body)
	var granted struct {
		URL     string            `json:"upload_url"`
		Path    string            `json:"object_path"`
		Headers map[string]string `json:"upload_headers"`
	}
	s.call(t, http.StatusOK, "POST", d.path+"/upload-url", map[string]any{"supports_upload_headers": true}, &granted)
	archive := filepath.Join(t.TempDir(), "source.tar.gz")
	repo.git(t, "archive", "--format", "tar.gz", "--output", archive, branch)
	tarball, err := os.ReadFile(archive)
	check.Must(t, err)
	var headers []string
	for name, value := range granted.Headers {
		headers = append(headers, name, value)
	}
	if got, err := s.do(t.Context(), "PUT", granted.URL, string(tarball), headers...); err != nil || got.status != http.StatusOK {
		t.Fatalf("the upload is answered %d %s (%v)", got.status, got.body, err)
	}
	var patched deploymentBody
	s.call(t, http.StatusOK, "PATCH", d.path, map[string]any{
		"source_revision_config": map[string]any{"source_tarball_path": granted.Path, "framework_config_path": "framework.json"},
	}, &patched)
	d.awaitDeployed(t, value(patched.LatestRevision))
	return d
}
