package local_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestResultOutlivesTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := openMachine(t, dir)
	good := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")}).URL())
	bad := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("false")}).URL())
	want := m.build(t, good)
	wantBad := m.wantFailure(t, bad, build.ReasonBuildCommandFailed)
	check.Must(t, m.Close())
	m = openMachine(t, dir)
	if diff := cmp.Diff(want, m.await(t, good)); diff != "" {
		t.Errorf("success (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(wantBad, m.await(t, bad)); diff != "" {
		t.Errorf("failure (-before +after):\n%s", diff)
	}
}

// TestANextStartWritesNothingAgain checks that a server starts on a full disk: the configuration of
// git stays as it is, and is written only if it has changed.
func TestANextStartWritesNothingAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check.Must(t, openMachine(t, dir).Close())
	name := filepath.Join(dir, "builds", "git", "config")
	first, err := os.Stat(name)
	check.Must(t, err)
	written, err := os.ReadFile(name)
	check.Must(t, err)
	check.Must(t, openMachine(t, dir).Close())
	if second, err := os.Stat(name); err != nil || !os.SameFile(first, second) {
		t.Errorf("%s is another file (%v)", name, err)
	}
	check.Must(t, os.WriteFile(name, []byte("[safe]\n"), 0o600))
	check.Must(t, openMachine(t, dir).Close())
	if text, err := os.ReadFile(name); err != nil || string(text) != string(written) {
		t.Errorf("%s holds %q (%v)", name, text, err)
	}
}

func TestClosedBuilderForgetsUnfinishedBuilds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, calls := openMachine(t, dir, func(c *local.Config) { c.Places = 1 }), newSwitchboard(t)
	running := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework(calls.caller())}).URL())
	waiting := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")}).URL())
	waiting.Workspace = running.Workspace // a build of another workspace would not wait
	m.start(t, running)
	m.start(t, waiting)
	wantDeath := calls.accept(t)
	check.Must(t, m.Close())
	wantDeath()
	if err := m.Start(t.Context(), waiting); err == nil {
		t.Error("Start after Close: got no error")
	}
	for _, spec := range []build.Spec{running, waiting} {
		if got := m.await(t, spec); got.State != build.Absent {
			t.Errorf("got %s, want absent", got.State)
		}
	}
	openMachine(t, dir).build(t, waiting)
}

func TestKilledServer(t *testing.T) {
	t.Parallel()
	dir, calls := t.TempDir(), newSwitchboard(t)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("test ! -e left && touch left && " + calls.caller() + " & wait")})
	spec := buildtest.NewSpec(r.URL())
	data, err := json.Marshal(spec)
	check.Must(t, err)
	server := exec.Command(program())
	server.Env = append(os.Environ(), "MODE=server", "DIR="+dir, "SPEC="+string(data))
	server.Stderr = os.Stderr
	check.Must(t, server.Start())
	wantDeath := calls.accept(t)
	check.Must(t, server.Process.Signal(syscall.SIGKILL))
	if err := server.Wait(); err == nil {
		t.Error("the server was not killed")
	}
	m := openMachine(t, dir)
	wantDeath()
	if got := m.await(t, spec); got.State != build.Absent {
		t.Errorf("got %s, want absent", got.State)
	}
	r.Commit(map[string]string{"framework.json": buildtest.Framework("test ! -e left")})
	m.build(t, spec)
}
