package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child/childtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// gate is a file for which a command of an agent's repository waits. Tests use it to stop a
// rollout.
type gate struct{ file string }

func newGate(t *testing.T) gate {
	t.Helper()
	dir := t.TempDir()
	if err := childtest.Open(dir); err != nil { // users of workspaces check for the file
		t.Fatal(err)
	}
	return gate{filepath.Join(dir, "open")}
}

// wait returns the shell command that waits at the gate.
func (g gate) wait() string { return fmt.Sprintf("until [ -e '%s' ]; do sleep 0.02; done", g.file) }

func (g gate) open(t *testing.T) {
	t.Helper()
	check.Must(t, os.WriteFile(g.file, nil, 0o600))
}
