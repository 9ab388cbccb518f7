package standalone

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// LockDirectory takes the data directory for this process, until the file is closed or the process ends, however it does.
func LockDirectory(data string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(data, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("another server uses the data directory %s", data), file.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock data directory: %w", err), file.Close())
	}
	return file, nil
}
