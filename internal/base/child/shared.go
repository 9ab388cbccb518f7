package child

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/slipway-run/slipway/internal/base/disk"
)

// mostCounted is more than memory can hold, and the sum of many such counts fits into an int64.
const mostCounted = 1 << 50

// SharedBy returns how many bytes the files of a user take in SharedMemory.
func SharedBy(user int) (taken int64) {
	for _, path := range sharedFiles(user) {
		taken += disk.Taken(path, mostCounted)
	}
	return taken
}

// removeShared removes the files of a user from SharedMemory. They would stay there after the
// end of the programs that made them.
func removeShared(user int) (err error) {
	for _, path := range sharedFiles(user) {
		err = errors.Join(err, RemoveFiles(path))
	}
	return err
}

// sharedFiles returns the files and directories in SharedMemory that belong to a user. A
// machine without this directory has none.
func sharedFiles(user int) (paths []string) {
	entries, err := os.ReadDir(SharedMemory)
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		// A file without a status may just have disappeared.
		if info, err := entry.Info(); err == nil && int(statusOf(info).Uid) == user {
			paths = append(paths, filepath.Join(SharedMemory, entry.Name()))
		}
	}
	return paths
}
