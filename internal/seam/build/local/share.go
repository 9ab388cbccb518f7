package local

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// worthSharing is the size in bytes from which a file of an environment is shared. Smaller files
// take a block of the disk at most.
const worthSharing = 4 << 10

// shareFiles replaces files of a new environment by links to the same files of the workspace's
// other environments, in the directory all. Nothing writes to a kept environment, so that nothing
// changes a file for several of them: no step of a build runs any more that could reach the new
// environment, and agents only read them. If it fails or ctx ends, the environment is as complete
// as before, and takes more of the disk.
func shareFiles(ctx context.Context, all, made string) (err error) {
	own, err := os.OpenRoot(made)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	entries, err := listed(all)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		other, err := os.OpenRoot(filepath.Join(all, entry.Name(), staged))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was erased just now
		}
		if err != nil {
			return err
		}
		if err := errors.Join(linkSame(ctx, other, own), other.Close()); err != nil {
			return err
		}
	}
	return nil
}

// linkSame replaces the files of an environment that another environment has under the same path,
// with the same content, owner and mode. Files that are links already stay as they are.
func linkSame(ctx context.Context, other, own *os.Root) error {
	return fs.WalkDir(own.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil || !entry.Type().IsRegular() {
			return err
		}
		mine, err := own.Lstat(path)
		if err != nil || mine.Size() < worthSharing || isLinked(mine) {
			return err
		}
		theirs, err := other.Lstat(path)
		if err != nil || !alike(mine, theirs) {
			return nil //nolint:nilerr // a file that the other environment does not have is not shared
		}
		content, err := contentOf(ctx, own, path)
		same, failed := contentOf(ctx, other, path)
		if err = errors.Join(err, failed); errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			// The other environment was erased just now, or a package lets nobody read the file.
			return nil
		}
		if err != nil || content != same {
			return err
		}
		return relink(filepath.Join(other.Name(), path), filepath.Join(own.Name(), path))
	})
}

// isLinked reports whether a file has several names.
func isLinked(file fs.FileInfo) bool {
	known, ok := file.Sys().(*syscall.Stat_t)
	return ok && known.Nlink > 1
}

// alike reports whether two different files may be one file.
func alike(one, other fs.FileInfo) bool {
	mine, ok := one.Sys().(*syscall.Stat_t)
	theirs, known := other.Sys().(*syscall.Stat_t)
	return ok && known && other.Mode() == one.Mode() && other.Size() == one.Size() && !os.SameFile(one, other) &&
		mine.Uid == theirs.Uid && mine.Gid == theirs.Gid && mine.Dev == theirs.Dev
}

// hashedAtOnce is how many bytes of a file are read before the build is asked whether it goes on.
const hashedAtOnce = 16 << 20

// contentOf returns a digest of a file of an environment, unless ctx ends before.
func contentOf(ctx context.Context, root *os.Root, path string) (digest string, err error) {
	file, err := root.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	hash := sha256.New()
	for err == nil {
		if err = ctx.Err(); err == nil {
			_, err = io.CopyN(hash, file, hashedAtOnce)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return string(hash.Sum(nil)), err
}

// relink makes a path another name of a file. If a file system permits no more names, the path
// stays a file of its own.
func relink(file, path string) error {
	temp := path + ".shared"
	err := os.Link(file, temp)
	switch {
	case errors.Is(err, syscall.EMLINK), errors.Is(err, syscall.EXDEV), errors.Is(err, syscall.EPERM), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return nil
}
