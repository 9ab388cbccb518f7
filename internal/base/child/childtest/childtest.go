// Package childtest helps tests of programs that have users of their own.
package childtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-run/slipway/internal/base/child"
)

// Users returns users that programs of other tests most probably do not have. With the last program
// of a user, the files of this user in shared memory are removed, in whichever test it ends.
func Users() child.UserRange {
	all := child.DefaultUsers
	return child.UserRange{First: all.First + rand.IntN((all.Last-all.First)/2), Last: all.Last}
}

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

// Deep is the name of the directories that Deepen makes: paths with more than twenty of them are
// too long for Linux.
var Deep = strings.Repeat("deep", 50)

// Deepen makes so many directories below each other in a directory, the last one without any
// permission. It makes the last one first, because the path to it may be too long for the system.
func Deepen(dir string, levels int) error {
	deep, next := filepath.Join(dir, Deep), filepath.Join(dir, "next")
	if err := os.Mkdir(deep, 0); err != nil {
		return err
	}
	for level := range levels {
		if err := errors.Join(os.Mkdir(next, 0o700), os.Chmod(deep, 0o700)); err != nil {
			return err
		}
		if err := os.Rename(deep, filepath.Join(next, Deep)); err != nil {
			return err
		}
		if level == 0 {
			if err := os.Chmod(filepath.Join(next, Deep), 0); err != nil {
				return err
			}
		}
		if err := os.Rename(next, deep); err != nil {
			return err
		}
	}
	return nil
}
