// Package childtest helps tests of programs that have users of their own.
package childtest

import (
	"fmt"
	"os"
	"path/filepath"
)

// Open lets every user enter a directory below the directory for temporary files, because the
// testing package makes directories for its own user only.
func Open(dir string) error {
	below, err := filepath.Rel(os.TempDir(), dir)
	if err != nil || !filepath.IsLocal(below) {
		return fmt.Errorf("%s is not in %s", dir, os.TempDir())
	}
	for ; below != "."; below = filepath.Dir(below) {
		if err := os.Chmod(filepath.Join(os.TempDir(), below), 0o755); err != nil {
			return err
		}
	}
	return nil
}
