package local_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestFaultOfTheBuilderEndsTheBuild builds a ref that git cannot be started with. The build is
// tried again, fails, and is logged once. The result is known after a restart of the server.
func TestFaultOfTheBuilderEndsTheBuild(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	dir := t.TempDir()
	m := openMachine(t, dir, func(c *local.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	spec := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")}).URL())
	spec.Ref = "a\x00b"
	m.wantFailure(t, spec, build.ReasonInternal, "server's log")
	if lines := strings.Count(log.String(), spec.Revision); lines != 1 || !strings.Contains(log.String(), "invalid argument") {
		t.Errorf("the log has %s", &log)
	}
	if noted := strings.Count(m.log(t, spec), "cloning"); noted != 3 {
		t.Errorf("the build was tried %d times, want 3", noted)
	}
	check.Must(t, m.Close())
	if got := openMachine(t, dir).await(t, spec); got.State != build.Failed {
		t.Errorf("after a restart the build is %s", got.State)
	}
}
