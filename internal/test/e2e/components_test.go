//go:build agents

package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAgentsComponents has a page load a component of the repository's user interface with the
// client SDK, and use the component.
func TestAgentsComponents(t *testing.T) {
	t.Parallel()
	s := newAgentServer(t)
	repo := newRepository(t)
	check.Must(t, os.CopyFS(repo.dir, os.DirFS(filepath.Join("testdata", "components", "node"))))
	repo.commit(t)
	d := s.deployExample(t, "node", repo)
	d.lives(t, "JavaScript", "components")
	d.remove(t)
}
