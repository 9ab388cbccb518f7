package child

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// levels is how many directories below each other this package has open at a time: more than the
// trees of ordinary programs have, and few of the files that a process may have open.
const levels = 128

// readAtOnce is how many names of a directory are read at a time.
const readAtOnce = 1024

// RemoveFiles erases a file, or a directory that children wrote into, even if they left
// directories without permissions in it, as Go's module cache does.
//
// Programs may make trees of any depth. os.RemoveAll has all directories of a path open, so it
// cannot erase a path with more directories than a process may have open, and not every machine
// has an rm that can. RemoveFiles moves directories that are too deep up to the top of the tree and
// erases them there. It takes bounded descriptors and memory, and linear time. A program that
// changes the tree meanwhile cannot lead it out of the tree: it looks up each name in a directory
// that is open, and follows no link.
func RemoveFiles(path string) (err error) {
	if err := os.Remove(path); err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	path = filepath.Clean(path)
	parent, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parent.Close()) }()
	r := removal{prefix: rand.Text()}
	return r.erase(parent, "", filepath.Base(path), 0)
}

// removal erases one tree.
type removal struct {
	top *os.Root
	// moved is how many directories were moved to the top. prefix begins their names there.
	moved  int
	prefix string
}

// erase erases an entry of a directory, which has this path from the top and is so many levels
// below the directory of the whole tree. Another caller may erase the tree at the same time.
func (r *removal) erase(dir *os.Root, path, name string, level int) error {
	err := r.try(dir, path, name, level)
	if err == nil {
		return nil
	}
	if _, gone := dir.Lstat(name); errors.Is(gone, fs.ErrNotExist) {
		return nil
	}
	return err
}

// try is erase that fails if the entry disappears meanwhile.
func (r *removal) try(dir *os.Root, path, name string, level int) error {
	failed := dir.Remove(name)
	info, err := dir.Lstat(name)
	if failed == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !info.IsDir() {
		return failed
	}
	// Both moving a directory and emptying it need all permissions.
	if info.Mode()&0o700 != 0o700 {
		if err := dir.Chmod(name, 0o700); err != nil {
			return err
		}
	}
	path = filepath.Join(path, name)
	if level == levels {
		r.moved++
		return r.top.Rename(path, r.prefix+strconv.Itoa(r.moved))
	}
	opened, err := OpenDir(dir, info)
	if err != nil {
		return err
	}
	if level == 0 {
		r.top, path = opened, ""
	}
	if err := errors.Join(r.empty(opened, path, level+1), opened.Close()); err != nil {
		return err
	}
	return dir.Remove(name)
}

// empty erases the entries of a directory, until there are no more of them or none can be erased.
func (r *removal) empty(dir *os.Root, path string, level int) error {
	for {
		names, err := read(dir)
		if err != nil {
			return err
		}
		var failed error
		left := 0
		for _, name := range names {
			if err := r.erase(dir, path, name, level); err != nil {
				failed = err
				left++
			}
		}
		if left == len(names) {
			return failed
		}
	}
}

// read returns some names of the entries of a directory, none if it has no entries. It opens the
// directory each time, because a directory whose entries are erased meanwhile may hide others.
func read(dir *os.Root) ([]string, error) {
	file, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := file.Readdirnames(readAtOnce)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, errors.Join(err, file.Close())
}

// OpenDir opens a subdirectory that was found. It follows no link and waits for nothing, whatever a
// program has put in the place of the subdirectory: the dot makes the system open directories only.
func OpenDir(dir *os.Root, found fs.FileInfo) (*os.Root, error) {
	opened, err := dir.OpenRoot(found.Name() + "/.")
	if err != nil {
		return nil, err
	}
	info, err := opened.Stat(".")
	if err == nil && !os.SameFile(found, info) {
		err = &fs.PathError{Op: "open", Path: opened.Name(), Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}
