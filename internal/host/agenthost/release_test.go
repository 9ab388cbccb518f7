package agenthost_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/internal/host/agenthost"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/test/check"
)

func kept(t *testing.T, dir string) (files []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "releases"))
	check.Must(t, err)
	for _, entry := range entries {
		files = append(files, filepath.Join(dir, "releases", entry.Name()))
	}
	return files
}

func TestRestore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := newMachine(t, dir)
	r, removed := computetest.NewRelease(computetest.Serve), computetest.NewRelease(computetest.Serve)
	r.Env["SECRET"] = "open-sesame"
	check.Must(t, m.Apply(t.Context(), r))
	check.Must(t, m.Apply(t.Context(), removed))
	pid, err := computetest.Ask(patience(t), m.healthy(t, r), "pid")
	check.Must(t, err)
	check.Must(t, m.Remove(t.Context(), removed.Ref))
	r.Env["SECRET"] = "open-barley"
	check.Must(t, m.Restart(t.Context(), r, removed.Revision))
	m.shut()

	m = newMachine(t, dir)
	m.want(t, r, compute.Absent) // no release runs before Restore
	check.Must(t, m.host.Restore(t.Context()))
	check.Must(t, m.host.Restore(t.Context()))
	m.want(t, removed, compute.Absent)
	endpoint := m.healthy(t, r)
	if again, err := computetest.Ask(patience(t), endpoint, "pid"); err != nil || again == pid {
		t.Errorf("process %s answers, %v", again, err)
	}
	environment, err := computetest.Ask(patience(t), endpoint, "environment")
	if err != nil || !strings.Contains(environment, "SECRET=open-barley") {
		t.Errorf("the agent has another environment than when it was restarted: %s, %v", environment, err)
	}
	check.Must(t, m.Remove(t.Context(), r.Ref))
	if files := kept(t, dir); len(files) != 0 {
		t.Errorf("files %v are left", files)
	}
}

func TestReleasesAreKeptSealed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, r := newMachine(t, dir), computetest.NewRelease(computetest.Serve)
	r.Env["SECRET"] = "open-sesame"
	for range 2 {
		check.Must(t, m.Apply(t.Context(), r))
	}
	m.healthy(t, r)
	files := kept(t, dir)
	if len(files) != 1 {
		t.Fatalf("got files %v, want one", files)
	}
	info, err := os.Stat(files[0])
	check.Must(t, err)
	content, err := os.ReadFile(files[0])
	check.Must(t, err)
	if info.Mode() != 0o600 || bytes.Contains(content, []byte("sesame")) || bytes.Contains(content, []byte(r.Token)) || bytes.Contains(content, []byte("AGENT")) {
		t.Errorf("%s holds %q", info.Mode(), content)
	}
	for _, hidden := range []string{"sesame", r.Token, token} {
		if strings.Contains(m.log.String(), hidden) {
			t.Errorf("the log shows %q", hidden)
		}
	}
}

func TestRestoreGoesOnAfterAProblem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := newMachine(t, dir)
	changed, good, moved := computetest.NewRelease(computetest.Serve), computetest.NewRelease(computetest.Serve), computetest.NewRelease(computetest.Serve)
	for _, r := range []compute.Release{changed, good, moved} {
		check.Must(t, m.Apply(t.Context(), r))
	}
	m.shut()
	at := func(r compute.Release, workspace string) string {
		return filepath.Join(dir, "releases", r.Revision+"."+workspace)
	}
	check.Must(t, os.WriteFile(at(changed, changed.Workspace), []byte("not what was sealed"), 0o600))
	check.Must(t, os.Rename(at(moved, moved.Workspace), at(moved, good.Workspace)))
	unfinished := filepath.Join(dir, "releases", ".new-1")
	check.Must(t, os.WriteFile(unfinished, nil, 0o600))

	m = newMachine(t, dir)
	err := m.host.Restore(t.Context())
	for _, want := range []string{changed.Revision, "unknown version", moved.Revision, "belongs to another resource"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	m.want(t, good, compute.Healthy)
	m.want(t, changed, compute.Absent)
	m.want(t, moved, compute.Absent)
	if _, err := os.Stat(unfinished); err == nil {
		t.Error("what a host was writing when it died is still there")
	}
}

// TestTargetAndFilesAgree applies and removes a release at once, many times: the running
// releases are the stored releases.
func TestTargetAndFilesAgree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := newMachine(t, dir)
	for range 20 {
		r := computetest.NewRelease(computetest.Deaf)
		var callers sync.WaitGroup
		for i := range 4 {
			callers.Go(func() {
				change := m.Apply(t.Context(), r)
				if i%2 == 0 {
					change = m.Remove(t.Context(), r.Ref)
				}
				if change != nil {
					t.Error(change)
				}
			})
		}
		callers.Wait()
		status, err := m.target(t, r)
		check.Must(t, err)
		if runs, keeps := status != compute.Absent, len(kept(t, dir)) == 1; runs != keeps {
			t.Fatalf("runs: %v, is kept: %v", runs, keeps)
		}
		check.Must(t, m.Remove(t.Context(), r.Ref))
	}
}

// TestWhatCannotBeKeptIsAnError has a directory that is gone.
func TestWhatCannotBeKeptIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, r := newMachine(t, dir), computetest.NewRelease(computetest.Serve)
	check.Must(t, os.RemoveAll(filepath.Join(dir, "releases")))
	if err := m.Apply(t.Context(), r); err == nil || !strings.Contains(err.Error(), "500 Internal Server Error: keep release") {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(m.log.String(), "keep release") {
		t.Error("the log does not say so")
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	check.Must(t, os.WriteFile(file, nil, 0o600))
	for want, cfg := range map[string]agenthost.Config{
		"no token": {Dir: t.TempDir()}, "not a directory": {Dir: filepath.Join(file, "releases"), Token: token},
	} {
		if _, err := agenthost.New(cfg); err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
