package standalone_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/test/check"
)

// newBackup returns a backup of a data directory with one more file.
func newBackup(t *testing.T) []byte {
	t.Helper()
	var archive bytes.Buffer
	check.Must(t, standalone.Backup(t.Context(), newData(t, "logs/file"), &archive, func(string, error) {}))
	return archive.Bytes()
}

// TestARestoreKeepsTheDirectory restores to an empty directory, and to a link to it. A disk may be
// mounted there, so the directory must stay, and nothing may be written beside it.
func TestARestoreKeepsTheDirectory(t *testing.T) {
	t.Parallel()
	archive := newBackup(t)
	for name, link := range map[string]bool{"directory": false, "link": true} {
		disk, beside := filepath.Join(t.TempDir(), "disk"), t.TempDir()
		// A killed restore has left this.
		check.Must(t, os.MkdirAll(filepath.Join(disk, ".slipway-restoring-123", "logs"), 0o700))
		check.Must(t, os.Mkdir(filepath.Join(disk, "lost+found"), 0o700))
		check.Must(t, os.Chmod(disk, 0o755))
		before, err := os.Stat(disk)
		check.Must(t, err)
		data := disk
		if link {
			data = filepath.Join(beside, "data")
			check.Must(t, os.Symlink(disk, data))
		}
		check.Must(t, os.Chmod(filepath.Dir(disk), 0o500)) // binds only those who are not root
		_, err = standalone.Restore(t.Context(), bytes.NewReader(archive), data)
		check.Must(t, errors.Join(err, os.Chmod(filepath.Dir(disk), 0o700)))
		after, err := os.Stat(data)
		check.Must(t, err)
		if !os.SameFile(before, after) || after.Mode().Perm() != 0o700 {
			t.Errorf("%s: it is another directory, or has the mode %v", name, after.Mode())
		}
		if diff := cmp.Diff([]string{"lock", "logs/file", standalone.KeyFile, standalone.DatabaseFile}, filesIn(t, disk)); diff != "" {
			t.Errorf("%s: files (-want +got):\n%s", name, diff)
		}
		if left := filesIn(t, beside); len(left) > 1 {
			t.Errorf("%s: beside it are %v", name, left)
		}
		_, stop := serve(t, data)
		stop()
	}
}

// TestARestoreThatEndsEarlyLeavesTheDirectoryEmpty gives it half of a backup.
func TestARestoreThatEndsEarlyLeavesTheDirectoryEmpty(t *testing.T) {
	t.Parallel()
	archive, data := newBackup(t), t.TempDir()
	if _, err := standalone.Restore(t.Context(), bytes.NewReader(archive[:len(archive)-20]), data); err == nil {
		t.Error("half of a backup was restored")
	}
	if entries, err := os.ReadDir(data); err != nil || len(entries) > 0 {
		t.Errorf("left are %v (%v)", entries, err)
	}
}

// TestARestoreIsRefusedWhereAServerIs checks that a restore leaves alone what a server makes in the
// directory while the backup is unpacked.
func TestARestoreIsRefusedWhereAServerIs(t *testing.T) {
	t.Parallel()
	archive, data := newBackup(t), t.TempDir()
	var server *standalone.Server
	late := reads(func(p []byte) (int, error) {
		if server == nil {
			var err error
			server, err = standalone.Open(standalone.Config{Listen: "127.0.0.1:0", Data: data, Log: slog.New(slog.DiscardHandler)})
			check.Must(t, err)
		}
		read := copy(p, archive)
		archive = archive[read:]
		if read == 0 {
			return 0, io.EOF
		}
		return read, nil
	})
	_, err := standalone.Restore(t.Context(), late, data)
	if !errors.Is(err, standalone.ErrInUse) {
		t.Errorf("got %v, want %v", err, standalone.ErrInUse)
	}
	check.Must(t, server.Close(t.Context()))
	if _, err := standalone.Restore(t.Context(), bytes.NewReader(newBackup(t)), data); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("after the server: got %v, want %v", err, fs.ErrExist)
	}
}

// reads is a reader that is a function.
type reads func([]byte) (int, error)

func (r reads) Read(p []byte) (int, error) { return r(p) }
