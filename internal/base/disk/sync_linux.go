package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Sync makes all files of the file system of a directory durable. For a tree of many files this is
// much faster than to sync each of them.
func Sync(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(dir.Fd())), dir.Close())
}
