package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
)

// replaceFile writes one of the server's own files completely and durably, or not at all.
// Users of workspaces that may enter its directory can read it.
func replaceFile(path string, data []byte) error { return disk.Replace(path, data, 0o644) }

// writtenLimit bounds the size of each file that commands wrote and the server reads, in
// bytes.
const writtenLimit = 16 << 20

// readWritten reads a file that a command may have written.
func readWritten(root *os.Root, name string) ([]byte, error) {
	return framework.ReadFile(root, name, writtenLimit)
}

// copyTree fills a directory with the files of another directory. It never follows a link, and
// never overwrites a file that is there.
func copyTree(ctx context.Context, from, to *os.Root) error {
	return fs.WalkDir(from.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch {
		case err != nil || name == ".":
			return err
		case entry.IsDir():
			return to.Mkdir(name, 0o700)
		case entry.Type()&fs.ModeSymlink != 0:
			link, err := from.Readlink(name)
			if err != nil {
				return err
			}
			return to.Symlink(link, name)
		case entry.Type().IsRegular():
			return copyFile(from, to, name)
		default:
			return nil
		}
	})
}

// copyFile lets the file system share the contents where it can.
func copyFile(from, to *os.Root, name string) error {
	source, err := from.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	target, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
