package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestTheServersOwnWorkEndsWithTheBuild copies a tree for a build whose time is over.
func TestTheServersOwnWorkEndsWithTheBuild(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check.Must(t, errors.Join(os.MkdirAll(filepath.Join(dir, "from", "a"), 0o700), os.Mkdir(filepath.Join(dir, "to"), 0o700)))
	from, err := os.OpenRoot(filepath.Join(dir, "from"))
	check.Must(t, err)
	defer from.Close()
	to, err := os.OpenRoot(filepath.Join(dir, "to"))
	check.Must(t, err)
	defer to.Close()
	over, cancel := context.WithCancelCause(t.Context())
	cancel(&limit{build.ReasonBuildTimeout, "after a second"})
	failed, _ := errors.AsType[*build.Failure](ended(over, copyTree(over, from, to)))
	if failed == nil || failed.Reason != build.ReasonBuildTimeout {
		t.Errorf("the build ends with %v", failed)
	}
	if err := errors.New("broken"); ended(over, err) != err || ended(t.Context(), err) != err {
		t.Error("another error is taken for the end of the time")
	}
	check.Must(t, copyTree(t.Context(), from, to))
	if _, err := to.Stat("a"); err != nil {
		t.Error(err)
	}
}
