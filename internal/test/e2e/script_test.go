//go:build sdk

package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDeployScript runs the script of a pipeline: infra/examples/ci/deploy.sh, for a first
// revision, a second revision, and a revision that fails. It needs bash, curl and jq.
func TestDeployScript(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	repo := agentRepository(t)
	deploy := func(ref string) (agent, progress string, err error) {
		cmd := exec.Command(filepath.Join("..", "..", "..", "infra", "examples", "ci", "deploy.sh"), "from-a-pipeline", repo.url(), ref)
		cmd.Env = append(os.Environ(), "SLIPWAY_URL="+s.BaseURL, "SLIPWAY_API_KEY="+s.APIKey, "SLIPWAY_TENANT_ID="+s.TenantID,
			"SLIPWAY_PAUSE=0.1", "SLIPWAY_QUESTION="+askSF)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err = cmd.Run()
		return strings.TrimSpace(stdout.String()), stderr.String(), err
	}

	first, progress, err := deploy("main")
	if err != nil || !strings.HasPrefix(first, s.BaseURL+"/d/") || !strings.Contains(progress, "DEPLOYED") {
		t.Fatalf("the first revision: %q, %v\n%s", first, err, progress)
	}
	if second, progress, err := deploy("main"); err != nil || second != first {
		t.Errorf("the second revision: %q, %v, want the same deployment %q\n%s", second, err, first, progress)
	}
	if _, progress, err := deploy("no-such-branch"); err == nil || !strings.Contains(progress, "BUILD_FAILED\nREF_NOT_FOUND: ") {
		t.Errorf("a branch that does not exist: %v\n%s", err, progress)
	}
	if strings.Contains(progress, s.APIKey) {
		t.Errorf("the progress shows the key:\n%s", progress)
	}
}
