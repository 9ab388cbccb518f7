package standalone

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Lock is a file that this process has for itself, until the Lock is closed or the process ends for
// any reason.
type Lock struct{ file *os.File }

var (
	// ErrInUse says that another process has the data directory.
	ErrInUse = errors.New("another server uses the data directory")
	// ErrLocked says that the file of a Lock is taken.
	ErrLocked = errors.New("the file is locked")
)

// LockDirectory takes the data directory for this process.
func LockDirectory(data string) (*Lock, error) {
	lock, err := LockFile(filepath.Join(data, "lock"))
	if errors.Is(err, ErrLocked) {
		return nil, fmt.Errorf("%w %s", ErrInUse, data)
	}
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	return lock, nil
}

// LockFile makes a file, if there is none, and takes it. It does not wait: a file that is taken is
// an ErrLocked.
func LockFile(name string) (*Lock, error) {
	return lock(os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600))
}

func lock(file *os.File, err error) (*Lock, error) {
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Lock{file}, nil
}

// Close releases the file. Closing the file is not enough: a process that is just being started has
// the file open, too, for a moment.
func (l *Lock) Close() error {
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}
