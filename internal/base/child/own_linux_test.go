package child_test

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/child/childtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// newOwner is another user if this process can give files away, and its own user otherwise.
func newOwner() int { return cmp.Or(os.Geteuid(), tenant) }

func TestOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tree, outside := filepath.Join(dir, "tree"), filepath.Join(dir, "outside")
	check.Must(t, os.MkdirAll(filepath.Join(tree, strings.Repeat("a/", 120)), 0o700))
	check.Must(t, os.WriteFile(outside, nil, 0o600))
	before := ownerOf(t, outside)
	check.Must(t, os.WriteFile(filepath.Join(tree, "a", "a", "file"), nil, 0o400))
	check.Must(t, os.Symlink(outside, filepath.Join(tree, "a", "link")))
	check.Must(t, child.Own(t.Context(), tree, newOwner()))
	seen := 0
	check.Must(t, filepath.WalkDir(tree, func(path string, _ fs.DirEntry, err error) error {
		if seen++; err == nil && ownerOf(t, path) != newOwner() {
			t.Errorf("%s belongs to %d", path, ownerOf(t, path))
		}
		return err
	}))
	if seen != 123 || ownerOf(t, outside) != before {
		t.Errorf("there are %d files; the file outside belongs to %d", seen, ownerOf(t, outside))
	}
}

func ownerOf(t *testing.T, path string) int {
	t.Helper()
	info, err := os.Lstat(path)
	check.Must(t, err)
	return int(info.Sys().(*syscall.Stat_t).Uid)
}

// TestAttackOwnershipOfDeepTrees checks that a tree that would take long is refused, and that work
// that is not needed any more ends.
func TestAttackOwnershipOfDeepTrees(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check.Must(t, childtest.Deepen(dir, 300))
	t.Cleanup(func() { check.Must(t, child.RemoveFiles(filepath.Join(dir, childtest.Deep))) })
	if err := child.Own(t.Context(), dir, newOwner()); !errors.Is(err, child.ErrTooDeep) {
		t.Errorf("got %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := child.Own(over, dir, newOwner()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
