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
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/crash"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/secret/keyfile"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
)

// backupPrefix begins the names of directories in the data directory that hold files of backups
// which are being made.
const backupPrefix = "backup-"

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
// processes, reports of crashes, caches that builds fill again, files that the next start erases,
// and the files of the table and of the keys, which the backup has as they were at one moment.
var left = map[string]bool{
	lockFile: true, crashFile: true, crashFile + crash.Kept: true, lostAndFound: true, "builds/cache": true, "builds/running": true, "agents/running": true, "containers/running": true,
	"builds/erased": true, "agents/erased": true, "agents/releases": true, "agents/s": true,
	DatabaseFile: true, DatabaseFile + "-wal": true, DatabaseFile + "-shm": true, KeyFile: true,
}

// builds holds the files of builds, which agents may change at any time.
const builds = "builds/"

// errHoles says that a file has a size for which no disk may have room.
var errHoles = errors.New("the file consists of holes")

// mostHoles is how many times the disk that a file takes a backup may need for it. A file system
// that compresses keeps few files in less than such a part of their size. smallHoles is for files
// that take no disk yet.
const mostHoles, smallHoles = 16, 64 << 10

// consistsOfHoles reports whether a file takes far less disk than its size, which an agent can set
// to any number: its zeros would take the backup's time without end.
func consistsOfHoles(file fs.FileInfo) bool {
	known, ok := file.Sys().(*syscall.Stat_t)
	return ok && file.Size()/mostHoles > known.Blocks*512+smallHoles
}

// Backup writes a data directory as a gzip-compressed tar archive, also while a server uses the
// directory. The records are a snapshot of one moment. Files are copied after that moment, so
// all files that the records name are in the archive, except files that were deleted meanwhile, and
// files of builds that this process cannot read or that consist of holes: skipped gets their names,
// and why. The archive holds the key of all secrets.
func Backup(ctx context.Context, data string, w io.Writer, skipped func(name string, why error)) (err error) {
	data, err = filepath.Abs(data)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(data, DatabaseFile)); err != nil {
		return err
	}
	if err := backupsOf(data).clear(); err != nil {
		return fmt.Errorf("remove what an earlier backup has left: %w", err)
	}
	private, held, err := backupsOf(data).make()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, child.RemoveFiles(private), held.Close()) }()
	records := filepath.Join(private, DatabaseFile)
	keys, err := snapshot(ctx, data, records)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, keys.Close()) }()
	manifest, err := json.Marshal(Manifest{Version: build.Version(), Data: data, Taken: clock.System()})
	if err != nil {
		return err
	}
	compressed, err := gzip.NewWriterLevel(until{ctx, w}, gzip.BestSpeed)
	if err != nil {
		return err
	}
	b := backup{data, tar.NewWriter(compressed), skipped}
	header := &tar.Header{Name: manifestFile, Mode: 0o600, Size: int64(len(manifest)), ModTime: clock.System()}
	if err := errors.Join(b.archive.WriteHeader(header), second(b.archive.Write(manifest))); err != nil {
		return err
	}
	if err := inDir(private, func(dir *os.Root) error { return b.addFile(dir, DatabaseFile) }); err != nil {
		return err
	}
	if err := b.addRegular(keys, KeyFile); err != nil {
		return err
	}
	if err := inDir(data, func(dir *os.Root) error { return b.addAll(dir, "") }); err != nil {
		return err
	}
	return errors.Join(b.archive.Close(), compressed.Close())
}

// snapshot copies the records of a data directory, and opens the key file with the keys that have
// sealed them, which may be replaced afterwards.
func snapshot(ctx context.Context, data, records string) (keys *os.File, err error) {
	file := filepath.Join(data, KeyFile)
	err = keyfile.Hold(file, func() error {
		if keys, err = os.Open(file); err != nil {
			return err
		}
		if err = sqlite.Backup(ctx, filepath.Join(data, DatabaseFile), records); err != nil {
			return errors.Join(err, keys.Close())
		}
		return nil
	})
	return keys, err
}

// second is the error of a call that also returns a count.
func second(_ int, err error) error { return err }

// until is a writer that takes nothing more when its context is done: one file may be large.
type until struct {
	ctx context.Context
	to  io.Writer
}

func (u until) Write(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.to.Write(p)
}

type backup struct {
	// data is the data directory.
	data    string
	archive *tar.Writer
	skipped func(name string, why error)
}

// inDir opens a directory for a function.
func inDir(name string, do func(*os.Root) error) (err error) {
	dir, err := os.OpenRoot(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return do(dir)
}

// addAll adds the entries of a directory, which has this name in the archive, except the paths in
// left. It looks up each entry in the open directory: agents may change their trees meanwhile, and
// a link that they put in the place of a directory is not followed.
func (b backup) addAll(dir *os.Root, name string) error {
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return b.pass(name, err)
	}
	for _, entry := range entries {
		below := path.Join(name, entry.Name())
		if left[below] || strings.HasPrefix(below, backupPrefix) {
			continue
		}
		if err := b.add(dir, below); err != nil {
			return err
		}
	}
	return nil
}

// pass returns an error with which a file cannot be read, unless the backup does without the file:
// it was deleted or replaced meanwhile, or an agent has given it a path that is too long for the
// system, or permissions that leave this process out.
func (b backup) pass(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !strings.HasPrefix(name, builds) {
		return err
	}
	// A link that leads out of the directory is no error of the system.
	_, ofSystem := errors.AsType[syscall.Errno](err)
	odd := !ofSystem
	for _, known := range []error{syscall.ENAMETOOLONG, fs.ErrPermission, syscall.ENOTDIR, syscall.ELOOP, syscall.EINVAL} {
		odd = odd || errors.Is(err, known)
	}
	if !odd {
		return err
	}
	b.skipped(name, err)
	return nil
}

// The system takes no longer paths, and a process holds a file open for each directory above the
// entry that it looks at.
const longestPath, mostLevels = 4096, 500

// add adds the entry of a directory that has this name in the archive: a directory with all its
// entries, a link or a file. Any other kind of file, such as a socket, belongs to a process and is
// left out.
func (b backup) add(dir *os.Root, name string) error {
	if len(b.data)+1+len(name) >= longestPath || strings.Count(name, "/") > mostLevels {
		return b.pass(name, &fs.PathError{Op: "open", Path: name, Err: syscall.ENAMETOOLONG})
	}
	info, err := dir.Lstat(path.Base(name))
	if err != nil {
		return b.pass(name, err)
	}
	switch info.Mode().Type() {
	case fs.ModeSymlink:
		to, err := dir.Readlink(path.Base(name))
		if err != nil {
			return b.pass(name, err)
		}
		return b.addHeader(info, to, name)
	case fs.ModeDir:
		if err := b.addHeader(info, "", name+"/"); err != nil {
			return err
		}
		return b.addDir(dir, info, name)
	case 0:
		return b.addFile(dir, name)
	default:
		return nil
	}
}

// addHeader adds the header of an entry.
func (b backup) addHeader(info fs.FileInfo, to, name string) error {
	header, err := tar.FileInfoHeader(info, to)
	if err != nil {
		return err
	}
	header.Name = name
	return b.archive.WriteHeader(header)
}

// addDir adds the entries of a directory, if it is still the directory that was found.
func (b backup) addDir(dir *os.Root, info fs.FileInfo, name string) error {
	below, err := child.OpenDir(dir, info)
	if err != nil {
		return b.pass(name, err)
	}
	return errors.Join(b.addAll(below, name), below.Close())
}

// addFile adds as many bytes as a file has when it is opened, because logs grow meanwhile. If an
// agent makes it shorter meanwhile, zeros take the place of the bytes that are gone. A pipe that an
// agent has put in its place is not waited for, and a link does not lead out of the directory.
func (b backup) addFile(dir *os.Root, name string) (err error) {
	file, err := dir.OpenFile(path.Base(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return b.pass(name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return b.addRegular(file, name)
}

func (b backup) addRegular(file *os.File, name string) error {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	if strings.HasPrefix(name, builds) && consistsOfHoles(info) {
		b.skipped(name, errHoles)
		return nil
	}
	return b.addOpen(file, info, name)
}

func (b backup) addOpen(file io.Reader, info fs.FileInfo, name string) error {
	if err := b.addHeader(info, "", name); err != nil {
		return err
	}
	copied, err := io.CopyN(b.archive, file, info.Size())
	if errors.Is(err, io.EOF) {
		_, err = io.CopyN(b.archive, zeros{}, info.Size()-copied)
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", name, err)
	}
	return nil
}

// zeros is zeros without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
