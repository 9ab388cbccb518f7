package disk

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
)

// ErrLocked says that another Lock has the file.
var ErrLocked = errors.New("the file is locked")

// Lock is a file that this process has for itself, until the Lock is closed or the process ends for
// any reason.
type Lock struct{ File *os.File }

// Handover is how long the files of a killed process may be taken after its end: a process that it
// was just starting has them open, too, for a moment.
const Handover = time.Second

// lockPause is the time between two tries to take a file.
const lockPause = 10 * time.Millisecond

// LockFile makes a file, if there is none, and takes it. It waits for a file that is taken until
// ctx ends, and then returns ErrLocked.
func LockFile(ctx context.Context, name string) (*Lock, error) {
	for {
		lock, err := LockOpened(os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600))
		if !errors.Is(err, ErrLocked) || !clock.Sleep(ctx, lockPause) {
			return lock, err
		}
	}
}

// LockOpened takes a file or a directory that was just opened. It does not wait: a file that is
// taken is an ErrLocked.
func LockOpened(file *os.File, err error) (*Lock, error) {
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
	return errors.Join(syscall.Flock(int(l.File.Fd()), syscall.LOCK_UN), l.File.Close())
}
