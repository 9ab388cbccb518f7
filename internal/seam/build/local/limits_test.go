package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/child/childtest"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestABuildThatTakesTooMuchDisk checks that the build is stopped while it writes, or that it
// fails at its end if it was faster than the looks at its disk.
func TestABuildThatTakesTooMuchDisk(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(c *local.Config) { c.DiskMB = 16 })
	for command, words := range map[string][]string{
		"echo filling; dd if=/dev/zero of=big bs=1048576 count=64; exec sleep 600": {"took more than the 16 MB of disk", "exec sleep 600\" was running", "filling"},
		"dd if=/dev/zero of=big bs=1048576 count=64":                               {"more than the 16 MB of disk that they may"},
	} {
		r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework(command)})
		m.wantFailure(t, buildtest.NewSpec(r.URL()), build.ReasonOutOfDisk, words...)
	}
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("dd if=/dev/zero of=small bs=1048576 count=8")})
	m.build(t, buildtest.NewSpec(r.URL()))
}

// TestAttackFilesThatGrowWhenTheyAreCopied has commands that make files with a hole, or one file
// under many names: they take little disk, and the server makes an image of them. A server that
// looks at the disk while a command runs counts each name, too, and stops the build earlier.
func TestAttackFilesThatGrowWhenTheyAreCopied(t *testing.T) {
	t.Parallel()
	made := images{map[string]string{}}
	m := newMachine(t, func(c *local.Config) { c.Images, c.DiskMB = made, 16 })
	for _, command := range []string{
		"truncate -s 1T hole", "dd if=/dev/zero of=big bs=1048576 count=4; for n in 1 2 3 4 5; do ln big big$n; done",
	} {
		r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework(command)})
		m.wantFailure(t, buildtest.NewSpec(r.URL()), build.ReasonOutOfDisk, "more than the 16 MB of disk")
	}
	if len(made.seen) > 0 {
		t.Error("an image was made of the files")
	}
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("truncate -s 1M hole")})
	m.build(t, buildtest.NewSpec(r.URL()))
}

// TestAttackPackagesThatGrowWhenTheyAreKept has a package whose installation leaves a file with a
// hole.
func TestAttackPackagesThatGrowWhenTheyAreKept(t *testing.T) {
	bin := t.TempDir()
	check.Must(t, childtest.Open(bin))
	for name, script := range map[string]string{
		"node": "echo v24.0.0", "npm": "grep -q hollow package.json || exit 0; mkdir node_modules; truncate -s 64M node_modules/hole",
	} {
		check.Must(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	m := newMachine(t, func(c *local.Config) { c.DiskMB = 32 })
	spec := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{
		"framework.json": `{"graphs": {"agent": "./agent.mjs:graph"}}`, "agent.mjs": "", "package.json": `{"dependencies": {"hollow": "1.0.0"}}`, "package-lock.json": "{}",
	}).URL())
	m.wantFailure(t, spec, build.ReasonOutOfDisk, "copies of the build's files would take more than the 32 MB of disk")
	kept, err := filepath.Glob(filepath.Join(m.cfg.Dir, "kept", spec.Workspace, "node_modules", "*"))
	if err != nil || len(kept) > 0 {
		t.Errorf("kept is %v, %v", kept, err)
	}
}

// TestACommandThatFoundNoRoom checks that the disk is the reason also if the command has removed
// its files since.
func TestACommandThatFoundNoRoom(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("echo '[Errno 28] No space left on device'; exit 1")})
	m.wantFailure(t, buildtest.NewSpec(r.URL()), build.ReasonOutOfDisk, "the server's disk is nearly full")
}

// TestABuildWhoseLogFindsNoRoom says so, although its log cannot note this: at once, and later.
func TestABuildWhoseLogFindsNoRoom(t *testing.T) {
	t.Parallel()
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		return // only Linux has this device
	}
	m := newMachine(t)
	spec := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("echo compiling")}).URL())
	logs := filepath.Join(m.cfg.Private, "logs", spec.Revision)
	check.Must(t, os.Mkdir(logs, 0o700))
	check.Must(t, os.Symlink(full, filepath.Join(logs, fmt.Sprintf("%s.%020d.jsonl", revisionlog.Build, 0))))
	m.start(t, spec)
	for range 2 {
		if got := m.await(t, spec); got.State != build.Failed || got.Reason != build.ReasonOutOfDisk {
			t.Errorf("got %s, %s: %s", got.State, got.Reason, got.Message)
		}
	}
}

// TestABuildThatTakesTooMuchMemory checks that the build fails if the system can limit its
// memory.
func TestABuildThatTakesTooMuchMemory(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(c *local.Config) { c.MemoryMB = 128 })
	spec := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("echo compiling; MODE=hog " + program())}).URL())
	if child.CanLimit() != nil {
		m.build(t, spec)
		return
	}
	m.wantFailure(t, spec, build.ReasonOutOfMemory, "used more than the 128 MB of memory that a build may", "compiling")
}

// TestAttackABuildThatTakesPorts checks that the build fails while it holds too many of them.
func TestAttackABuildThatTakesPorts(t *testing.T) {
	t.Parallel()
	if !child.Confines() {
		return // only Linux finds these sockets
	}
	m := newMachine(t, func(c *local.Config) { c.Sockets, c.Timeout = 150, time.Minute })
	spec := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("MODE=hoard " + program())}).URL())
	m.wantFailure(t, spec, build.ReasonOutOfSockets, "held more than the 150 sockets that it may", "was running", "hoarding")
}

// TestABuildWithoutRoom checks that a build without room is not begun. A build that runs goes
// on in the reserve, and is stopped when the reserve is used, too. If a command fails then,
// the disk is the reason.
func TestABuildWithoutRoom(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// before and later are the free bytes of the disk before the command begins, and after
		// that.
		before, later int64
		command       string
		words         []string
	}{
		"begun":   {50, 50, "true", []string{"was not begun", "nearly full", "50B are free, and 100B are kept free"}},
		"stopped": {200, 10, "exec sleep 600", []string{"was stopped because the server's disk is nearly full", "exec sleep 600\" was running"}},
		"failed":  {200, 10, "exit 3", []string{"the server's disk is nearly full", "exit 3"}},
		"goes on": {200, 50, "true", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			look := func(dir string) (disk.Usage, error) {
				if began, err := filepath.Glob(filepath.Join(dir, "revisions", "*", "src", "began")); len(began) == 0 || err != nil {
					return disk.Usage{Free: c.before, Total: 1000}, err
				}
				return disk.Usage{Free: c.later, Total: 1000}, nil
			}
			m := newMachine(t, func(cfg *local.Config) { cfg.Space = disk.Open(cfg.Dir, disk.Keep{Bytes: 100}, look, cfg.Log) })
			spec := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("touch began; " + c.command)}).URL())
			if c.words == nil {
				m.build(t, spec)
				return
			}
			m.wantFailure(t, spec, build.ReasonOutOfDisk, c.words...)
		})
	}
}

// TestTheSizeOfBuilds checks that the size of kept builds is known, also after a restart. A
// workspace without room for another build gets no build.
func TestTheSizeOfBuilds(t *testing.T) {
	t.Parallel()
	const megabyte = 1 << 20
	dir, full := t.TempDir(), false
	errFull := fault.New(fault.Forbidden, "the quota is used up")
	room := func(string) error {
		if full {
			return errFull
		}
		return nil
	}
	bounded := func(c *local.Config) { c.Room = room }
	m := openMachine(t, dir, bounded)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("dd if=/dev/zero of=big bs=1048576 count=8")})
	spec, other := buildtest.NewSpec(r.URL()), buildtest.NewSpec(r.URL())
	other.Workspace = id.New(clock.System())
	wantSize := func(workspace string, builds int64) {
		t.Helper()
		if size := m.Size(workspace); size < builds*8*megabyte || size > builds*9*megabyte {
			t.Errorf("%d builds take %d bytes", builds, size)
		}
	}
	m.build(t, spec)
	wantSize(spec.Workspace, 1)
	wantSize(other.Workspace, 0)
	check.Must(t, m.Close())
	m = openMachine(t, dir, bounded)
	m.build(t, other)
	wantSize(spec.Workspace, 1)
	wantSize(other.Workspace, 1)
	check.Must(t, m.Remove(t.Context(), spec.Revision))
	wantSize(spec.Workspace, 0)
	full = true
	m.wantFailure(t, buildtest.NewSpec(r.URL()), build.ReasonOutOfDisk, "was not begun", "the quota is used up")
}
