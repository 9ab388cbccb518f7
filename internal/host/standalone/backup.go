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
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
)

// manifestFile is the first entry of a backup.
const manifestFile = "backup.json"

// Manifest describes the source of a backup.
type Manifest struct {
	// Version is the version of the program that wrote the backup.
	Version string `json:"version"`
	// Data is the absolute path of the data directory: built trees contain this path.
	Data  string    `json:"data"`
	Taken time.Time `json:"taken"`
}

// left are the paths below the data directory that a backup leaves out: marks of running
// processes, caches that builds fill again, and the table's own files, which the backup has as
// a copy.
var left = map[string]bool{
	"lock": true, "builds/cache": true, "builds/running": true, "agents/running": true, "containers/running": true,
	DatabaseFile: true, DatabaseFile + "-wal": true, DatabaseFile + "-shm": true,
}

// Backup writes a data directory as a gzip-compressed tar archive, also while a server uses the
// directory. The records are a snapshot of one moment. Files are copied after that moment, so
// all files that the records name are in the archive, except files that were deleted meanwhile.
// The archive holds the key of all secrets.
func Backup(ctx context.Context, data string, w io.Writer) (err error) {
	data, err = filepath.Abs(data)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(data, DatabaseFile)); err != nil {
		return err
	}
	private, err := os.MkdirTemp(data, "backup-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(private)) }()
	records := filepath.Join(private, DatabaseFile)
	if err := sqlite.Backup(ctx, filepath.Join(data, DatabaseFile), records); err != nil {
		return err
	}
	manifest, err := json.Marshal(Manifest{Version: build.Version(), Data: data, Taken: clock.System()})
	if err != nil {
		return err
	}
	compressed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	b := backup{ctx, tar.NewWriter(compressed)}
	header := &tar.Header{Name: manifestFile, Mode: 0o600, Size: int64(len(manifest)), ModTime: clock.System()}
	if err := errors.Join(b.archive.WriteHeader(header), second(b.archive.Write(manifest))); err != nil {
		return err
	}
	if err := b.add(records, DatabaseFile); err != nil {
		return err
	}
	if err := b.addAll(data); err != nil {
		return err
	}
	return errors.Join(b.archive.Close(), compressed.Close())
}

// second is the error of a call that also returns a count.
func second(_ int, err error) error { return err }

type backup struct {
	ctx     context.Context
	archive *tar.Writer
}

// addAll adds the content of a data directory, except the paths in left.
func (b backup) addAll(data string) error {
	return filepath.WalkDir(data, func(path string, entry fs.DirEntry, err error) error {
		if err := b.ctx.Err(); err != nil {
			return err
		}
		if errors.Is(err, fs.ErrNotExist) && path != data {
			return nil // deleted meanwhile
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(data, path)
		if err != nil || name == "." {
			return err
		}
		name = filepath.ToSlash(name)
		if left[name] || strings.HasPrefix(name, "backup-") {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return b.add(path, name)
	})
}

// add adds a directory, a link or a file under a name. Any other kind of file, such as a
// socket, belongs to a process and is left out.
func (b backup) add(path, name string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	switch kind := info.Mode().Type(); kind {
	case fs.ModeSymlink:
		to, err := os.Readlink(path)
		if err != nil {
			return err
		}
		header, err := tar.FileInfoHeader(info, to)
		if err != nil {
			return err
		}
		header.Name = name
		return b.archive.WriteHeader(header)
	case fs.ModeDir:
		header, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		header.Name = name + "/"
		return b.archive.WriteHeader(header)
	case 0:
		return b.addFile(path, name)
	default:
		return nil
	}
}

// addFile adds the bytes that a file has when it is opened: logs grow meanwhile.
func (b backup) addFile(path, name string) (err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header, err := tar.FileInfoHeader(info, "")
	if err != nil {
		return err
	}
	header.Name = name
	if err := b.archive.WriteHeader(header); err != nil {
		return err
	}
	if _, err := io.CopyN(b.archive, file, info.Size()); err != nil {
		return fmt.Errorf("copy %s: %w", name, err)
	}
	return nil
}

// ErrNoBackup says that a file is not a backup.
var ErrNoBackup = errors.New("the file is not a backup")

// Restore makes a data directory from a backup. The directory must not exist, or be empty; it
// exists only when the whole backup is unpacked. Owners of files are restored if this process
// is root.
func Restore(ctx context.Context, r io.Reader, data string) (manifest Manifest, err error) {
	data, err = filepath.Abs(data)
	if err != nil {
		return manifest, err
	}
	if entries, err := os.ReadDir(data); len(entries) > 0 {
		return manifest, fmt.Errorf("the data directory %s is not empty: %w", data, fs.ErrExist)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
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
	if err := os.MkdirAll(filepath.Dir(data), 0o700); err != nil {
		return manifest, err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(data), filepath.Base(data)+"-restoring-")
	if err != nil {
		return manifest, err
	}
	if err := unpack(ctx, archive, fresh); err != nil {
		return manifest, errors.Join(err, child.RemoveFiles(fresh))
	}
	if err := os.Remove(data); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return manifest, errors.Join(err, child.RemoveFiles(fresh))
	}
	return manifest, os.Rename(fresh, data)
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
