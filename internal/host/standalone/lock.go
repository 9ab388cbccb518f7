package standalone

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-run/slipway/internal/base/disk"
)

// ErrInUse says that another process has the data directory.
var ErrInUse = errors.New("another server uses the data directory")

// lockFile is the file in the data directory that a server has locked while it works.
const lockFile = "lock"

// LockDirectory takes the data directory for this process. A server may be started at once after
// another server of the directory was killed.
func LockDirectory(data string) (*disk.Lock, error) {
	ctx, cancel := context.WithTimeout(context.Background(), disk.Handover)
	defer cancel()
	lock, err := disk.LockFile(ctx, filepath.Join(data, lockFile))
	if errors.Is(err, disk.ErrLocked) {
		return nil, fmt.Errorf("%w %s", ErrInUse, data)
	}
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	return lock, nil
}

// InUse reports whether another process has the data directory. It makes no directory and no file.
func InUse(data string) bool {
	lock, err := disk.LockOpened(os.Open(filepath.Join(data, lockFile)))
	if err == nil {
		err = lock.Close()
	}
	return errors.Is(err, disk.ErrLocked)
}
