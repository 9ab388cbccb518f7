package process_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child/childtest"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestFilesThatCannotBeErased stay where no agent finds them, and the server starts without them.
func TestFilesThatCannotBeErased(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	releases, socket := filepath.Join(dir, "releases"), filepath.Join(dir, "s", "socket")
	file := filepath.Join(releases, "revision", "home", "file")
	check.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	check.Must(t, os.MkdirAll(socket, 0o700))
	pinned, release, err := childtest.Pin(file)
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, release()) })
	var log check.Log
	first := newMachine(t, func(c *process.Config) { c.Dir, c.Log = dir, slog.New(slog.NewTextHandler(&log, nil)) })
	wantErased(t, releases)
	wantErased(t, filepath.Dir(socket))
	if strings.Contains(log.String(), "cannot be erased") != pinned {
		t.Errorf("the file is pinned: %v; the log has %s", pinned, &log)
	}
	check.Must(t, release())
	check.Must(t, first.Close(t.Context()))
	newMachine(t, func(c *process.Config) { c.Dir = dir })
	wantErased(t, filepath.Join(dir, "erased"))
}
