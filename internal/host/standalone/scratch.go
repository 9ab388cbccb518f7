package standalone

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/disk"
)

// scratch names the directories with files that a process has not completed. Their process has them
// locked. So when it has been killed, another process sees that nobody needs them any more.
type scratch struct {
	parent, prefix string
	// content begins the names of all files in these directories. A directory with other files
	// belongs to somebody else.
	content string
}

// backupsOf are the directories of backups of a data directory, each with a copy of the records.
func backupsOf(data string) scratch { return scratch{data, backupPrefix, DatabaseFile} }

// restoringTo are the directories of restores that make a data directory.
func restoringTo(data string) scratch {
	return scratch{filepath.Dir(data), filepath.Base(data) + "-restoring-", ""}
}

// restoringIn are the directories of restores that fill a data directory that exists.
func restoringIn(data string) scratch { return scratch{data, ".slipway-restoring-", ""} }

// make makes a directory and locks it.
func (s scratch) make() (dir string, held *disk.Lock, err error) {
	for {
		if dir, err = os.MkdirTemp(s.parent, s.prefix); err != nil {
			return "", nil, err
		}
		held, err = lockDir(dir)
		switch {
		case err == nil:
			return dir, held, nil
		case errors.Is(err, disk.ErrLocked) || errors.Is(err, fs.ErrNotExist):
			// Another process took it for one that was left.
		default:
			return "", nil, errors.Join(err, os.Remove(dir))
		}
	}
}

// clear removes the directories that no process has locked.
func (s scratch) clear() error {
	entries, err := os.ReadDir(s.parent)
	if errors.Is(err, fs.ErrPermission) {
		return nil // others may keep the names in the parent directory to themselves
	}
	if err != nil {
		return err
	}
	var failed error
	for _, entry := range entries {
		// os.MkdirTemp adds digits.
		number, ours := strings.CutPrefix(entry.Name(), s.prefix)
		if ours && number != "" && strings.Trim(number, "0123456789") == "" && entry.IsDir() {
			failed = errors.Join(failed, s.remove(filepath.Join(s.parent, entry.Name())))
		}
	}
	return failed
}

// remove removes a directory, unless it is locked or belongs to somebody else.
func (s scratch) remove(dir string) (err error) {
	held, err := lockDir(dir)
	if errors.Is(err, disk.ErrLocked) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), s.content) {
			return nil
		}
	}
	return child.RemoveFiles(dir)
}

// lockDir takes a directory as disk.LockFile takes a file. A directory that was removed meanwhile
// does not exist.
func lockDir(dir string) (*disk.Lock, error) {
	held, err := disk.LockOpened(os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0))
	if err != nil {
		return nil, err
	}
	locked, err := held.File.Stat()
	current, gone := os.Lstat(dir)
	if err = errors.Join(err, gone); err == nil && !os.SameFile(locked, current) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return held, nil
}
