package e2e_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/test/check"
)

// plants are confidential values that clients send to a server.
type plants struct {
	repository, wrongPassword, gitToken, failing, refused, patched, client, access, refresh, deleted, kept, rotated string
}

func newPlants() *plants {
	made := func(name string) string { return name + "-" + rand.Text() }
	return &plants{
		made("repository"), made("wrong-password"), made("git-token"), made("failing"), made("refused"), made("patched"), made("client"), made("access"),
		made("refresh"), made("deleted"), made("kept"), made("rotated"),
	}
}

func (p *plants) all() []string {
	return []string{p.repository, p.wrongPassword, p.gitToken, p.failing, p.refused, p.patched, p.client, p.access, p.refresh, p.deleted, p.kept, p.rotated}
}

// plant sends all of them to the server, in requests that succeed and in requests that fail,
// and returns them together with the secrets that the server generated. An answer may contain
// a secret only if its purpose is to show the secret.
func (s *server) plant(t *testing.T, p *plants) []string {
	t.Helper()
	s.plantDeployments(t, p)
	var made struct{ Key string }
	issued := s.quiet(t, "POST", "/v2/api-keys", map[string]any{"role": "editor"})
	if err := json.Unmarshal(issued.body, &made); err != nil || made.Key == "" {
		t.Fatalf("there is no key: %s (%v)", issued.body, err)
	}
	hook := s.quiet(t, "POST", "/v2/webhooks", map[string]any{"url": "https://hooks.example.com/slipway"})
	var webhook struct{ Secret string }
	if err := json.Unmarshal(hook.body, &webhook); err != nil || webhook.Secret == "" {
		t.Fatalf("the webhook has no secret: %s (%v)", hook.body, err)
	}
	s.mum(t, p, "POST", "/v2/integrations/git/credentials", map[string]any{"host": "git.example.com", "user": "deploy", "token": p.gitToken})
	s.mum(t, p, "POST", "/v2/integrations/git/credentials", map[string]any{"host": 7, "user": "deploy", "token": p.refused})
	provider := map[string]any{
		"provider_id": "calendar", "name": "Calendar", "client_id": "slipway", "client_secret": p.client,
		"auth_url": "https://accounts.example.com/authorize", "token_url": "https://accounts.example.com/token", "uses_pkce": true,
	}
	s.mum(t, p, "POST", "/v2/auth/providers", provider)
	s.mum(t, p, "POST", "/v2/auth/providers", provider)
	s.mum(t, p, "PATCH", "/v2/auth/providers/calendar", map[string]any{"client_secret": p.client, "token_url": "no address"})
	s.mum(t, p, "POST", "/v2/auth/tokens/import", map[string]any{
		"provider_id": "calendar", "access_token": p.access, "refresh_token": p.refresh, "user_id": "ada", "scopes": []string{"read"},
	})
	s.mum(t, p, "POST", "/v2/auth/tokens/import", map[string]any{"provider_id": "nobody", "access_token": p.refused, "user_id": "ada"})
	s.mum(t, p, "GET", "/v2/auth/tokens?user_id=ada", nil)
	for _, value := range []string{p.kept, p.rotated} {
		s.mum(t, p, "POST", "/v2/secrets", map[string]any{"name": "kept", "data": map[string]string{"key": value}})
		s.mum(t, p, "PATCH", "/v2/secrets/kept", map[string]any{"data": map[string]string{"key": value, "a key": value}})
		s.mum(t, p, "PATCH", "/v2/secrets/kept", map[string]any{"data": map[string]string{"key": value}})
	}
	s.mum(t, p, "GET", "/v2/secrets/kept", nil)
	s.mum(t, p, "POST", "/v2/secrets", map[string]any{"name": "Kept", "data": map[string]string{"key": p.refused}})
	s.mum(t, p, "GET", "/v2/audit-log?limit=100", nil)
	return append(p.all(), made.Key, strings.TrimPrefix(webhook.Secret, "whsec_"))
}

// plantDeployments goes through create, build, deploy, run, patch and delete, and lets some of
// these steps fail.
func (s *server) plantDeployments(t *testing.T, p *plants) {
	t.Helper()
	repo := agentRepository(t)
	at := servePrivately(t, repo, p.repository)
	signed := func(password string) string { return strings.Replace(at, "http://", "http://deploy:"+password+"@", 1) }
	private, created := s.create(t, creation(signed(p.repository), "main", secret{"DELETED", p.deleted}))
	private.awaitDeployed(t, value(created.LatestRevision))
	private.thread(t).wait(t, ask(askSF, fast)).Messages.expect(t, answered...)
	var patched deploymentBody
	s.call(t, http.StatusOK, "PATCH", private.path, map[string]any{"secrets": []secret{{"PATCHED", p.patched}}}, &patched)
	private.awaitDeployed(t, value(patched.LatestRevision))
	for _, body := range []map[string]any{
		creation(signed(p.wrongPassword), "main", secret{"FAILING", p.failing}),
		creation(signed(p.repository), "no-such-branch", secret{"FAILING", p.failing}),
	} {
		failing, created := s.create(t, body)
		failing.awaitStatus(t, value(created.LatestRevision), "BUILD_FAILED")
		s.mum(t, &plants{wrongPassword: p.wrongPassword, repository: p.repository}, "GET", failing.path, nil)
		s.mum(t, p, "GET", failing.path+"/revisions", nil)
	}
	s.mum(t, p, "POST", "/v2/deployments", creation(at, "refs/heads/x", secret{"REFUSED", p.refused}))
	s.mum(t, p, "POST", "/v2/deployments", creation(at, "main", secret{"PORT", p.refused}))
	s.mum(t, p, "POST", "/v2/deployments", map[string]any{"name": 7, "secrets": []any{map[string]any{"value": p.refused}}})
	s.mum(t, p, "POST", "/v2/deployments", `{"secrets": [{"name": "REFUSED", "value": "`+p.refused)
	s.call(t, http.StatusNoContent, "DELETE", private.path, nil, nil)
	eventually(t, "the deployment is gone", func() (bool, any) {
		got, err := s.do(t.Context(), "GET", private.path, nil)
		return err == nil && got.status == http.StatusNotFound, fmt.Sprintf("%d %s", got.status, got.body)
	})
}

// quiet sends a request that must succeed and whose answer contains a secret.
func (s *server) quiet(t *testing.T, method, path string, body any) response {
	t.Helper()
	got, err := s.do(t.Context(), method, path, body)
	if err != nil || got.status/100 != 2 {
		t.Fatalf("%s %s: %d %s (%v)", method, path, got.status, got.body, err)
	}
	return got
}

// mum sends a request whose answer must contain none of the values. It may be any answer
// except a fault of the server.
func (s *server) mum(t *testing.T, p *plants, method, path string, body any) {
	t.Helper()
	got, err := s.do(t.Context(), method, path, body)
	if err != nil || got.status >= http.StatusInternalServerError {
		t.Fatalf("%s %s: %d %s (%v)", method, path, got.status, got.body, err)
	}
	for _, value := range p.all() {
		if value != "" && bytes.Contains(got.body, []byte(value)) {
			t.Errorf("%s %s answers %s with %s in it", method, path, got.body, value)
		}
	}
}

// servePrivately serves a repository over HTTP to clients that have the password.
func servePrivately(t *testing.T, repo *repository, password string) string {
	t.Helper()
	server := httptest.NewServer(gitFor(t, repo.dir, func(_, sent string) bool { return sent == password }))
	t.Cleanup(server.Close)
	return server.URL + "/.git"
}

// gitFor serves the repositories below a directory to clients with a correct user name and
// password.
func gitFor(t *testing.T, root string, right func(user, password string) bool) http.Handler {
	t.Helper()
	libexec, err := exec.Command("git", "--exec-path").Output()
	check.Must(t, err)
	backend := &cgi.Handler{
		Stderr: io.Discard, Path: filepath.Join(strings.TrimSpace(string(libexec)), "git-http-backend"),
		Env: []string{
			"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, sent, _ := r.BasicAuth(); !right(user, sent) {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	})
}

// watch searches, until it is told to stop, for the values in the arguments of all processes
// and in git's notes about its remotes. These places are gone when a build has ended.
func watch(t *testing.T, on *local, values []string) (stop func()) {
	t.Helper()
	ended := make(chan struct{})
	var work sync.WaitGroup
	looks := 0
	var sought [][]byte
	for _, value := range values {
		sought = append(sought, forms(value)...)
	}
	work.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			looks++
			for _, file := range exposed(on) {
				content, err := os.ReadFile(file)
				if err != nil {
					continue // it has ended meanwhile
				}
				for _, form := range sought {
					if bytes.Contains(content, form) {
						t.Errorf("%s has %s in it:\n%q", file, form, content)
					}
				}
			}
			select {
			case <-ended:
				return
			case <-ticker.C:
			}
		}
	})
	return func() {
		close(ended)
		work.Wait()
		if looks < 10 {
			t.Errorf("it was looked %d times only", looks)
		}
	}
}

// commandLines returns the files with the command lines of all processes. A pattern that names the
// file in its folder would list the folder of each process.
func commandLines() []string {
	files, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(files) == 0 {
		panic("this system does not list its processes in /proc")
	}
	for i, folder := range files {
		files[i] = filepath.Join(folder, "cmdline")
	}
	return files
}

// exposed returns the files that other users could read, or that still exist after their
// purpose has ended.
func exposed(on *local) []string {
	files := commandLines()
	_ = filepath.WalkDir(on.data(), func(file string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && (filepath.Base(file) == "config" || filepath.Base(file) == "FETCH_HEAD") {
			files = append(files, file)
		}
		return nil // a file that was removed meanwhile does not exist
	})
	return files
}
