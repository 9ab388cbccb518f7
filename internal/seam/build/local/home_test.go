package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/test/check"
)

// home returns the home directory of a workspace's builds, by its number.
func (m machine) home(workspace, number string) string {
	return filepath.Join(m.cfg.Dir, "cache", workspace, number)
}

// aDayPasses changes the time of a home as if a day had passed.
func (m machine) aDayPasses(t *testing.T, workspace, number string) {
	t.Helper()
	before := time.Now().Add(-24 * time.Hour)
	check.Must(t, os.Chtimes(m.home(workspace, number), before, before))
}

// wantThere checks whether the paths exist.
func wantThere(t *testing.T, want bool, paths ...string) {
	t.Helper()
	for _, path := range paths {
		_, err := os.Stat(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		if got := err == nil; got != want {
			t.Errorf("%s is there: %v, want %v", path, got, want)
		}
	}
}

func TestAHomeIsErasedADayAfterTheLastBuildThatUsedIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := openMachine(t, dir)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("touch ~/downloaded")})
	first, second, stranger := buildtest.NewSpec(r.URL()), buildtest.NewSpec(r.URL()), buildtest.NewSpec(r.URL())
	second.Workspace = first.Workspace
	for _, spec := range []build.Spec{first, second, stranger} {
		m.build(t, spec)
	}
	home, kept := m.home(first.Workspace, "1"), filepath.Join(m.cfg.Dir, "kept", first.Workspace)
	erase := func() {
		t.Helper()
		m.aDayPasses(t, first.Workspace, "1")
		check.Must(t, m.Remove(t.Context(), stranger.Revision))
		m.build(t, stranger)
	}

	check.Must(t, m.Remove(t.Context(), first.Revision))
	erase()
	wantThere(t, true, home, kept)
	check.Must(t, m.Close())
	m = openMachine(t, dir)
	erase()
	wantThere(t, true, home, kept)
	check.Must(t, m.Remove(t.Context(), second.Revision))
	wantThere(t, true, home, kept)
	erase()
	wantThere(t, false, filepath.Dir(home), kept)
	wantThere(t, true, m.home(stranger.Workspace, "1"))

	m.build(t, first)
	check.Must(t, m.Remove(t.Context(), first.Revision))
	m.aDayPasses(t, first.Workspace, "1")
	check.Must(t, m.Close())
	openMachine(t, dir)
	wantThere(t, false, home, kept)
}

// TestYarnsOfAWorkspaceWaitForEachOther checks that the first home of a workspace has the setting,
// and that builds may replace it.
func TestYarnsOfAWorkspaceWaitForEachOther(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework(`grep -q "^--mutex \"file:$HOME/" ~/.yarnrc && grep -qx -e "--cache-folder \"$HOME/.cache/yarn\"" ~/.yarnrc && echo own >~/.yarnrc`)})
	spec := buildtest.NewSpec(r.URL())
	m.build(t, spec)
	again := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework(`grep -qx own ~/.yarnrc`)}).URL())
	again.Workspace = spec.Workspace
	m.build(t, again)
}

// TestAHomeIsNeverThereWithoutItsSettings checks that a home whose making fails is made by the next
// build.
func TestAHomeIsNeverThereWithoutItsSettings(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	spec := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework(`grep -q "^--mutex" ~/.yarnrc`)}).URL())
	erased := filepath.Join(m.cfg.Dir, "erased")
	check.Must(t, os.RemoveAll(erased))
	check.Must(t, os.WriteFile(erased, nil, 0o600))
	m.wantFailure(t, spec, build.ReasonInternal)
	wantThere(t, false, m.home(spec.Workspace, "1"))
	check.Must(t, os.Remove(erased))
	again := buildtest.NewSpec(spec.RepoURL)
	again.Workspace = spec.Workspace
	m.build(t, again)
}

func TestAHomeThatIsTooLargeGetsNoMoreBuilds(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(c *local.Config) { c.HomeMB, c.DiskMB = 1, 8 })
	fill := func(megabytes string) string { return "head -c " + megabytes + "M /dev/zero >~/download" }
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")})
	workspace := buildtest.NewSpec(r.URL()).Workspace
	build := func(command string) build.Spec {
		t.Helper()
		r.Commit(map[string]string{"framework.json": buildtest.Framework(command)})
		spec := buildtest.NewSpec(r.URL())
		spec.Workspace = workspace
		m.build(t, spec)
		return spec
	}
	large := build(fill("2"))
	build("test ! -e ~/download")
	wantThere(t, true, m.home(workspace, "1"), m.home(workspace, "2"))
	build("touch ~/again")
	wantThere(t, true, filepath.Join(m.home(workspace, "2"), "again"))
	check.Must(t, m.Remove(t.Context(), large.Revision))
	m.aDayPasses(t, workspace, "1")
	check.Must(t, m.Remove(t.Context(), build("true").Revision))
	wantThere(t, false, m.home(workspace, "1"))
	wantThere(t, true, m.home(workspace, "2"), filepath.Join(m.cfg.Dir, "kept", workspace))

	r.Commit(map[string]string{"framework.json": buildtest.Framework(fill("12"))})
	m.wantFailure(t, buildtest.NewSpec(r.URL()), "OUT_OF_DISK", "8 MB of disk")
}
