package local_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child/childtest"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestFilesThatCannotBeErased does not keep the server from starting and building.
func TestFilesThatCannotBeErased(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "builds", "erased", "1", "file")
	check.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	pinned, release, err := childtest.Pin(file)
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, release()) })
	var log check.Log
	m := openMachine(t, dir, func(c *local.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	m.build(t, buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")}).URL()))
	if strings.Contains(log.String(), "cannot be erased") != pinned {
		t.Errorf("the file is pinned: %v; the log has %s", pinned, &log)
	}
	check.Must(t, release())
	check.Must(t, m.Close())
	openMachine(t, dir)
	wantThere(t, false, file)
}
