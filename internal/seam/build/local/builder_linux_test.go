package local_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/child/childtest"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestABuildReachesWhatIsItsOwn runs a build command that reads the server's key, and build
// commands that read the files that another workspace's build has left. If the kernel cannot
// confine the commands, all these builds succeed.
func TestABuildReachesWhatIsItsOwn(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	commit := func(command string) build.Spec {
		return buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework(command), "agent.go": "package main"}).URL())
	}
	other := m.build(t, commit("echo secret >~/left && cat ~/left agent.go"))
	key := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(other.Artifact.Own[0]))), "secret.key")
	check.Must(t, os.WriteFile(key, []byte("the key"), 0o600))
	for _, path := range []string{key, filepath.Join(other.Artifact.Dir, "agent.go"), filepath.Join(other.Artifact.Shared[2], "left")} {
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
		if !child.Confines() {
			m.build(t, commit("cat "+path))
			continue
		}
		m.wantFailure(t, commit("cat "+path), build.ReasonBuildCommandFailed, path, "Permission denied")
	}
}

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
