package child

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAttackDirectoriesThatChange puts other files in the place of a directory just before it is
// opened.
func TestAttackDirectoriesThatChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	check.Must(t, err)
	defer root.Close()
	path := filepath.Join(dir, "tree")
	check.Must(t, errors.Join(os.Mkdir(path, 0o700), os.Mkdir(filepath.Join(dir, "outside"), 0o700)))
	found, err := root.Lstat("tree")
	check.Must(t, err)
	opened, err := OpenDir(root, found)
	check.Must(t, err)
	check.Must(t, opened.Close())
	check.Must(t, os.Rename(path, filepath.Join(dir, "aside")))
	for name, replace := range map[string]func() error{
		"a link":            func() error { return os.Symlink("outside", path) },
		"a link to itself":  func() error { return os.Symlink("tree", path) },
		"a pipe":            func() error { return syscall.Mkfifo(path, 0o600) },
		"another directory": func() error { return os.Mkdir(path, 0o700) },
		"nothing":           func() error { return nil },
	} {
		check.Must(t, replace())
		if opened, err := OpenDir(root, found); err == nil {
			t.Errorf("%s: opened %s", name, opened.Name())
		}
		check.Must(t, os.RemoveAll(path))
	}
}
