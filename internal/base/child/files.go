package child

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// RemoveFiles erases a directory that children wrote into, even if they left directories
// without write permission in it, as Go's module cache does.
func RemoveFiles(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	unlock := func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return os.Chmod(path, 0o700)
	}
	if err := filepath.WalkDir(dir, unlock); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
