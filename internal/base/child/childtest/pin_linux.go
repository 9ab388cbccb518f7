package childtest

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Pin makes a file that nobody can remove until release is called. If the user or the file system
// cannot do so, the file is an ordinary file, and not pinned.
func Pin(path string) (pinned bool, release func() error, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return false, nil, err
	}
	// The flag of a file has the same value as the attribute.
	set := func(flags int) error { return unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, flags) }
	pinned = set(unix.STATX_ATTR_IMMUTABLE) == nil
	return pinned, sync.OnceValue(func() (err error) {
		if pinned {
			err = set(0)
		}
		return errors.Join(err, file.Close())
	}), nil
}
