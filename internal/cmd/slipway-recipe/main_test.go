package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestABuildReturnsOwnRoutes reads a repository with routes of its own: a stack serves them by the
// settings that the build returns.
func TestABuildReturnsOwnRoutes(t *testing.T) {
	t.Parallel()
	tree := t.TempDir()
	text := `{"graphs": {"agent": "./agent.py:graph"}, "dependencies": ["."], "http": {"app": "./app.py:app"}}`
	check.Must(t, os.WriteFile(filepath.Join(tree, "framework.json"), []byte(text), 0o600))
	check.Must(t, os.WriteFile(filepath.Join(tree, "pyproject.toml"), nil, 0o600))
	var said bytes.Buffer
	check.Must(t, run([]string{"-tree", tree, "-to", t.TempDir(), "-committed", "2026-03-01T12:00:00Z", "-install-command", "make", "-build-command", "make"}, nil, &said))
	var got answer
	check.Must(t, json.Unmarshal(said.Bytes(), &got))
	if got.Failure != nil || got.Settings.HTTP == nil || got.Settings.HTTP.App == "" {
		t.Errorf("the build says %s", said.Bytes())
	}
	if remarks := strings.Join(got.Remarks, "\n"); !strings.Contains(remarks, "install_command is not run") || !strings.Contains(remarks, "build_command is not run") {
		t.Errorf("the remarks about the commands of a Python agent are %q", got.Remarks)
	}
}
