//go:build agents || cli || repositories

package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// newAgentServer starts a server that finds uv. Without uv it would install its own; the tests
// of builds cover that.
func newAgentServer(t *testing.T) *server {
	t.Helper()
	find := exec.Command("sh", filepath.Join(built.root, "infra", "runtimes", "uv.sh"))
	find.Stderr = t.Output()
	uv, err := find.Output()
	if err != nil {
		t.Fatalf("there is no uv: %v", err)
	}
	on := newLocal(t.TempDir())
	on.env = append(on.env, "PATH="+filepath.Dir(strings.TrimSpace(string(uv)))+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return startServer(t, on)
}
