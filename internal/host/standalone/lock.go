package standalone

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Lock is a data directory that this process has for itself, until the Lock is closed or the
// process ends for any reason.
type Lock struct{ file *os.File }

// ErrInUse says that another process has the data directory.
var ErrInUse = errors.New("another server uses the data directory")

// LockDirectory takes the data directory for this process.
func LockDirectory(data string) (*Lock, error) {
	file, err := os.OpenFile(filepath.Join(data, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("%w %s", ErrInUse, data), file.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock data directory: %w", err), file.Close())
	}
	return &Lock{file}, nil
}

// Close releases the directory. Closing the file is not enough: a process that is just being
// started has the file open, too, for a moment.
func (l *Lock) Close() error {
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}
