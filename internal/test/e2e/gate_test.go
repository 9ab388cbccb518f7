package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// gate is a file that a command of an agent's repository waits for. Tests hold a rollout at it.
type gate struct{ file string }

func newGate(t *testing.T) gate {
	t.Helper()
	return gate{filepath.Join(t.TempDir(), "open")}
}

// wait is the shell command that waits at the gate.
func (g gate) wait() string { return fmt.Sprintf("until [ -e '%s' ]; do sleep 0.02; done", g.file) }

func (g gate) open(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(g.file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
