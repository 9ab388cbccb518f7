package standalone

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/disk"
)

// ErrNoBackup says that a file is not a backup.
var ErrNoBackup = errors.New("the file is not a backup")

// Restore makes a data directory from a backup. The directory must not exist, or be empty; its
// files appear only when the whole backup is unpacked. Owners of files are restored if this process
// is root.
func Restore(ctx context.Context, r io.Reader, data string) (manifest Manifest, err error) {
	data, err = filepath.Abs(data)
	if err != nil {
		return manifest, err
	}
	exists, err := empty(data)
	if err != nil {
		return manifest, err
	}
	compressed, err := gzip.NewReader(r)
	if err != nil {
		return manifest, fmt.Errorf("%w: %w", ErrNoBackup, err)
	}
	archive := tar.NewReader(compressed)
	if header, err := archive.Next(); err != nil || header.Name != manifestFile {
		return manifest, ErrNoBackup
	}
	if err := json.NewDecoder(io.LimitReader(archive, 1<<20)).Decode(&manifest); err != nil {
		return manifest, fmt.Errorf("%w: %w", ErrNoBackup, err)
	}
	place, move := restoringTo(data), moveTo
	if exists {
		place, move = restoringIn(data), moveInto
	}
	fresh, held, err := unpackBeside(ctx, place, archive, compressed)
	if err != nil {
		return manifest, err
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	if err := move(fresh, data); err != nil {
		return manifest, errors.Join(err, child.RemoveFiles(fresh))
	}
	return manifest, nil
}

// empty reports whether a data directory exists. A directory with files is an error; the files of
// killed restores in it are removed.
func empty(data string) (exists bool, err error) {
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err := restoringIn(data).clear(); err != nil {
		return true, fmt.Errorf("remove what an earlier restore has left: %w", err)
	}
	return true, noFiles(data)
}

// noFiles returns an error for a directory with entries other than the given ones.
func noFiles(data string, except ...string) error {
	entries, err := entriesOf(data)
	for _, entry := range entries {
		if !slices.Contains(except, entry.Name()) {
			return fmt.Errorf("the data directory %s is not empty: %w", data, fs.ErrExist)
		}
	}
	return err
}

// unpackBeside unpacks a backup into a new directory, which the caller must move.
func unpackBeside(ctx context.Context, place scratch, archive *tar.Reader, compressed io.Reader) (fresh string, held *disk.Lock, err error) {
	if err := os.MkdirAll(place.parent, 0o700); err != nil {
		return "", nil, err
	}
	if err := place.clear(); err != nil {
		return "", nil, fmt.Errorf("remove what an earlier restore has left: %w", err)
	}
	if fresh, held, err = place.make(); err != nil {
		return "", nil, err
	}
	if err := unpackAll(ctx, archive, compressed, fresh); err != nil {
		return "", nil, errors.Join(err, child.RemoveFiles(fresh), held.Close())
	}
	return fresh, held, nil
}

// moveTo gives a directory another name, durably.
func moveTo(dir, name string) error {
	if err := os.Rename(dir, name); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(name))
}

// moveInto moves the files of a directory into the empty directory above it, durably. A disk may be
// mounted there, or a link may lead there, so this directory must stay. The records come first and
// the keys last: a server does not start with records alone, see LoadKeys.
func moveInto(dir, data string) (err error) {
	lock, err := LockDirectory(data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := noFiles(data, filepath.Base(dir), lockFile); err != nil {
		return err
	}
	if err := os.Chmod(data, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var names []string
	for _, entry := range entries {
		if name := entry.Name(); name != DatabaseFile && name != KeyFile {
			names = append(names, name)
		}
	}
	for _, name := range slices.Concat([]string{DatabaseFile}, names, []string{KeyFile}) {
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(data, name)); err != nil {
			return err
		}
	}
	return errors.Join(os.Remove(dir), disk.SyncDir(data))
}

// unpackAll writes the entries of a backup below dir durably, and reads the backup to its end: the
// checksum of the whole follows the last entry.
func unpackAll(ctx context.Context, archive *tar.Reader, compressed io.Reader, dir string) error {
	if err := unpack(ctx, archive, dir); errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the backup is damaged, its end is missing: %w", err)
	} else if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, compressed); err != nil {
		return fmt.Errorf("the backup is damaged: %w", err)
	}
	return disk.Sync(dir)
}

// unpack writes the entries of a backup below dir. The modes of directories come last, because
// some directories of builds are not writable.
func unpack(ctx context.Context, archive *tar.Reader, dir string) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	var dirs []*tar.Header
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(header.Name, "/")
		switch header.Typeflag {
		case tar.TypeDir:
			err = root.Mkdir(name, 0o700)
			dirs = append(dirs, header)
		case tar.TypeSymlink:
			err = errors.Join(root.Symlink(header.Linkname, name), own(root, name, header))
		case tar.TypeReg:
			err = errors.Join(writeFile(root, name, archive), own(root, name, header), root.Chmod(name, header.FileInfo().Mode()))
		default:
			err = fmt.Errorf("%w: %s is neither a file, a link nor a directory", ErrNoBackup, name)
		}
		if err != nil {
			return err
		}
	}
	for _, header := range dirs {
		name := strings.TrimSuffix(header.Name, "/")
		if err := errors.Join(own(root, name, header), root.Chmod(name, header.FileInfo().Mode())); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(root *os.Root, name string, content io.Reader) error {
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// own gives a file its former owner, which only root can do.
func own(root *os.Root, name string, header *tar.Header) error {
	if os.Getuid() != 0 {
		return nil
	}
	return root.Lchown(name, header.Uid, header.Gid)
}
