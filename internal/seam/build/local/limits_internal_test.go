package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child"
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

// TestABuildThatCannotOwnItsFilesClosesThem when its user does not get them.
func TestABuildThatCannotOwnItsFilesClosesThem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	users, err := child.OpenUsers(filepath.Join(dir, "users"), child.DefaultUsers)
	check.Must(t, err)
	b := &Builder{cfg: Config{Dir: dir, Users: users}}
	b.homes.of = map[string]string{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	j := &job{builder: b, spec: build.Spec{Workspace: "w", Revision: "r"}, ctx: ctx}
	if err := j.open(b.dirOf("r"), filepath.Join(b.dirOf("r"), "src")); err == nil {
		t.Fatal("the files of a cancelled build were given to its user")
	}
	for _, left := range []*os.Root{j.root, j.tree} {
		if _, err := left.Stat("."); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s stays open (%v)", left.Name(), err)
		}
	}
}
