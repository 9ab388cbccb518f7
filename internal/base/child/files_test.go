package child_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/child/childtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestRemoveFilesErasesReadOnlyDirectories(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tree")
	inner := filepath.Join(dir, "a", "b")
	check.Must(t, os.MkdirAll(inner, 0o700))
	check.Must(t, os.WriteFile(filepath.Join(inner, "file"), nil, 0o400))
	check.Must(t, os.Mkdir(filepath.Join(dir, "closed"), 0))
	check.Must(t, os.Chmod(inner, 0o500))
	check.Must(t, child.RemoveFiles(dir))
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
	check.Must(t, child.RemoveFiles(dir))
}

// TestRemoveFilesAtTheSameTime has several callers erase one tree, as the teardown of a deployment
// and the step of its rollout do that was under way.
func TestRemoveFilesAtTheSameTime(t *testing.T) {
	t.Parallel()
	for range 3 {
		dir := filepath.Join(t.TempDir(), "tree")
		for i := range 50 {
			check.Must(t, os.MkdirAll(filepath.Join(dir, strconv.Itoa(i%10), strconv.Itoa(i), "a"), 0o700))
		}
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				if err := child.RemoveFiles(dir); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the directory is still there: %v", err)
		}
	}
}

// TestAttackRemovalOfDeepTrees removes trees with more directories below each other than a process
// may have open, and with paths that are too long for the system.
func TestAttackRemovalOfDeepTrees(t *testing.T) { //nolint:paralleltest // it bounds the files of this process
	dir := filepath.Join(t.TempDir(), "tree")
	const wide, levels = 4, 700
	for i := range wide {
		branch := filepath.Join(dir, "a", strings.Repeat("b/", i), strconv.Itoa(i))
		check.Must(t, os.MkdirAll(branch, 0o700))
		check.Must(t, childtest.Deepen(branch, levels/(1+i)))
	}
	var limit syscall.Rlimit
	check.Must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	few := syscall.Rlimit{Cur: 300, Max: limit.Max}
	check.Must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	err := child.RemoveFiles(dir)
	check.Must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	check.Must(t, err)
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

// TestAttackRemovalThroughLinks has links to files outside in a tree, and in the place of the tree.
func TestAttackRemovalThroughLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tree, outside := filepath.Join(dir, "tree"), filepath.Join(dir, "outside")
	kept := filepath.Join(outside, "inner", "file")
	check.Must(t, os.MkdirAll(filepath.Dir(kept), 0o700))
	check.Must(t, os.WriteFile(kept, nil, 0o600))
	for _, link := range []string{filepath.Join(tree, "a", "link"), filepath.Join(tree, "link")} {
		check.Must(t, os.MkdirAll(filepath.Dir(link), 0o700))
		check.Must(t, os.Symlink(outside, link))
	}
	check.Must(t, child.RemoveFiles(tree))
	check.Must(t, os.Symlink("outside", tree))
	check.Must(t, child.RemoveFiles(tree))
	if _, err := os.Lstat(tree); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the link is still there: %v", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}
