package build_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestVersionIsStampedOrNoted(t *testing.T) {
	t.Parallel()
	noted := func(version string) *debug.BuildInfo { return &debug.BuildInfo{Main: debug.Module{Version: version}} }
	for _, c := range []struct {
		stamped string
		info    *debug.BuildInfo
		want    string
	}{
		{"v1.2.3", noted("v0.0.0-20261123043000-b719b10aaaaa+dirty"), "v1.2.3"},
		{"v1.2.3", nil, "v1.2.3"},
		{"", noted("v0.0.0-20261123043000-b719b10aaaaa+dirty"), "v0.0.0-20261123043000-b719b10aaaaa+dirty"},
		{"", noted("v1.4.0"), "v1.4.0"},
		{"", noted("(devel)"), "dev"},
		{"", noted(""), "dev"},
		{"", nil, "dev"},
	} {
		if got := build.VersionOf(c.stamped, c.info); got != c.want {
			t.Errorf("stamped with %q, with %v noted: got %q, want %q", c.stamped, c.info, got, c.want)
		}
	}
}

// TestVersionOfAProgram lets the linker stamp a program, with the flag that the Makefile gives
// to the linker.
func TestVersionOfAProgram(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{
		"-s -w": "dev",
		"-s -w -X github.com/slipway-run/slipway/internal/seam/build.stamped=v1.2.3": "v1.2.3",
	} {
		program := filepath.Join(t.TempDir(), "version")
		built := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", program, "./testdata/version")
		built.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := built.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		printed, err := exec.CommandContext(t.Context(), program).Output()
		check.Must(t, err)
		if got := strings.TrimSpace(string(printed)); got != want {
			t.Errorf("linked with %q: got %q, want %q", flags, got, want)
		}
	}
}
