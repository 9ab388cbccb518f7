package child

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Confinement bounds the files and processes that a program can reach. Inside Private the
// program reaches only the paths that are named here. Outside it, the program reads the files
// that its user may read, and writes nothing but a few devices. It cannot act on processes
// that are not its own: it cannot signal them, read their memory, change their limits or
// connect to their abstract sockets. If the system has no means for a part of this, Gaps says
// so.
type Confinement struct {
	// Private is the server's directory; "" confines nothing.
	Private string
	// Write are the paths that the program may read, run and change. Read are the paths that
	// it may read and run. A path that does not exist is left out.
	Write, Read []string
	// User is the user and the group that the program runs as, without any power of the
	// server's; 0 leaves it the server's user. The modes of files apply to the program as to
	// any other user. So within Private its way to the paths named here is opened, and outside
	// it must be open already.
	User int
	// Ports are the TCP ports that the program may listen on; 0 stands for any port that the
	// system picks. nil lets it listen on all ports.
	Ports []uint16
}

// SharedMemory is the only directory outside Private that every confined program may write to:
// the C library keeps semaphores there.
const SharedMemory = "/dev/shm"

// MostProcesses is how many processes and threads all programs of a user may have together where
// no control group bounds each program. The server's own user has no such limit, because the limit
// would count the server's threads.
const MostProcesses = 8192

// resolve returns the path without links and relative parts.
func resolve(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(absolute)
}

// Public are the directories outside private that every confined program may write to.
func Public(private string) []string {
	resolved, err := resolve(private)
	if private == "" || err != nil || contains(SharedMemory, resolved) {
		return nil
	}
	return []string{SharedMemory}
}

// contains reports whether a path is a directory or lies in it.
func contains(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// ErrTooDeep says that a directory has more directories below each other than Own goes down.
var ErrTooDeep = fmt.Errorf("there are more than %d directories below each other", levels)

// Own gives a directory and everything in it to a user and the group of the same number, unless ctx
// ends before. It follows no link out of the directory, even if a program changes something there
// meanwhile.
func Own(ctx context.Context, dir string, user int) (err error) {
	if user == 0 {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err := root.Lchown(".", user, user); err != nil {
		return err
	}
	return own(ctx, root, user, 1)
}

// own gives the entries of a directory to a user. It opens each directory once: to look up a path
// from the top for each entry would take quadratic time in a tree of any depth.
func own(ctx context.Context, dir *os.Root, user, level int) error {
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := dir.Lchown(entry.Name(), user, user); err != nil {
			return err
		}
		if !entry.IsDir() {
			continue
		}
		if level == levels {
			return fmt.Errorf("own %s: %w", dir.Name(), ErrTooDeep)
		}
		info, err := dir.Lstat(entry.Name())
		if err != nil {
			return err
		}
		below, err := OpenDir(dir, info)
		if err != nil {
			return err
		}
		if err := errors.Join(own(ctx, below, user, level+1), below.Close()); err != nil {
			return err
		}
	}
	return nil
}

// OwnOnce does the same as Own, unless the directory itself belongs to the user already.
func OwnOnce(ctx context.Context, dir string, user int) error {
	if user == 0 {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if int(statusOf(info).Uid) == user {
		return nil
	}
	return Own(ctx, dir, user)
}

// statusOf returns the system's own description of a file, which all files of package os have.
func statusOf(info fs.FileInfo) *syscall.Stat_t {
	status, _ := info.Sys().(*syscall.Stat_t)
	return status
}
