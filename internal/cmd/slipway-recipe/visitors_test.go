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

// TestAStackHasNoVisitors refuses a repository with routes of its own, which are the only routes
// whose visitors each process counts for itself.
func TestAStackHasNoVisitors(t *testing.T) {
	t.Parallel()
	tree := t.TempDir()
	text := `{"graphs": {"agent": "./agent.py:graph"}, "dependencies": ["."], "http": {"app": "./app.py:app"}}`
	check.Must(t, os.WriteFile(filepath.Join(tree, "framework.json"), []byte(text), 0o600))
	check.Must(t, os.WriteFile(filepath.Join(tree, "pyproject.toml"), nil, 0o600))
	var said bytes.Buffer
	check.Must(t, run([]string{"-tree", tree, "-to", t.TempDir(), "-committed", "2026-03-01T12:00:00Z"}, &said))
	var refused answer
	check.Must(t, json.Unmarshal(said.Bytes(), &refused))
	if f := refused.Failure; f == nil || !strings.Contains(f.Message, "- http: the repository's own routes and HTTP settings are served on one machine only") {
		t.Errorf("the build says %s", said.Bytes())
	}
}
