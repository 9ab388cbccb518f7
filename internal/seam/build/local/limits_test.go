package local_test

import (
	"testing"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/local"
)

// TestABuildThatTakesTooMuchDisk is stopped while it writes, and at its end when it was faster than who looks.
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

// TestABuildThatTakesTooMuchMemory fails where the system can limit it.
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
