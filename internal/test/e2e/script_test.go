//go:build sdk

package e2e_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestDeployScript runs the script of a pipeline: infra/examples/ci/deploy.sh, for a first
// revision, a second revision, and a revision that fails. The answers to the first requests are
// lost on their way. It needs bash, curl and jq.
func TestDeployScript(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	repo := agentRepository(t)
	server, key := s.BaseURL, s.APIKey
	deploy := func(ref string) (agent, progress string, err error) {
		cmd := exec.Command(filepath.Join("..", "..", "..", "infra", "examples", "ci", "deploy.sh"), "from-a-pipeline", repo.url(), ref)
		cmd.Env = append(os.Environ(), "SLIPWAY_URL="+server, "SLIPWAY_API_KEY="+key, "SLIPWAY_TENANT_ID="+s.TenantID,
			"SLIPWAY_PAUSE=0.1", "SLIPWAY_QUESTION="+askSF)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err = cmd.Run()
		return strings.TrimSpace(stdout.String()), stderr.String(), err
	}

	lossy := httptest.NewServer(losesAnswers(t, s.BaseURL))
	defer lossy.Close()
	server = lossy.URL
	first, progress, err := deploy("main")
	if err != nil || !strings.HasPrefix(first, s.BaseURL+"/d/") || !strings.Contains(progress, "DEPLOYED") {
		t.Fatalf("the first revision: %q, %v\n%s", first, err, progress)
	}
	if second, progress, err := deploy("main"); err != nil || second != first || strings.Contains(progress, "SKIPPED") {
		t.Errorf("the second revision: %q, %v, want the same deployment %q\n%s", second, err, first, progress)
	}
	server = s.BaseURL
	if _, progress, err := deploy("no-such-branch"); err == nil || !strings.Contains(progress, "BUILD_FAILED\nREF_NOT_FOUND: ") {
		t.Errorf("a branch that does not exist: %v\n%s", err, progress)
	}
	key = "slw_wrong"
	if _, progress, err := deploy("main"); exitCode(err) != 1 || strings.Count(progress, "curl:") != 1 || !strings.Contains(progress, `"detail":`) {
		t.Errorf("with a wrong key: %v, want the exit code 1\n%s", err, progress)
	}
	key = ""
	if _, progress, err := deploy("main"); exitCode(err) != 2 || !strings.Contains(progress, "SLIPWAY_API_KEY") {
		t.Errorf("without a key: %v, want the exit code 2\n%s", err, progress)
	}
	if strings.Contains(progress, s.APIKey) {
		t.Errorf("the progress shows the key:\n%s", progress)
	}
}

// exitCode returns the exit code of a program that failed, 0 if it did not fail.
func exitCode(err error) int {
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return failed.ExitCode()
	}
	return 0
}

// losesAnswers is a proxy that passes each change of deployments to the server, and answers its
// first try with 502.
func losesAnswers(t *testing.T, server string) http.Handler {
	t.Helper()
	target, err := url.Parse(server)
	check.Must(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	var tries sync.Map
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, again := tries.LoadOrStore(r.Method, true); r.Method == http.MethodGet || again {
			proxy.ServeHTTP(w, r)
			return
		}
		proxy.ServeHTTP(httptest.NewRecorder(), r)
		http.Error(w, "<html>Bad Gateway</html>", http.StatusBadGateway)
	})
}
