package standalone

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestWhatAKilledBackupLeaves is removed, and so is what a killed restore leaves. Directories of
// processes that are at work, and of other people, stay.
func TestWhatAKilledBackupLeaves(t *testing.T) {
	t.Parallel()
	archive := func(t *testing.T, data string) *bytes.Buffer {
		t.Helper()
		var packed bytes.Buffer
		check.Must(t, Backup(t.Context(), data, &packed, func(string, error) {}))
		return &packed
	}
	for name, c := range map[string]struct {
		// backups and restores say which directories are removed.
		backups, restores bool
		act               func(t *testing.T, data string)
	}{
		"the next backup": {true, false, func(t *testing.T, data string) { t.Helper(); archive(t, data) }},
		"the next restore": {true, true, func(t *testing.T, data string) {
			t.Helper()
			packed := archive(t, data)
			check.Must(t, os.Rename(data, data+"-lost"))
			_, err := Restore(t.Context(), packed, data)
			check.Must(t, errors.Join(err, os.RemoveAll(data), os.Rename(data+"-lost", data)))
		}},
		"the next start": {true, true, func(t *testing.T, data string) {
			t.Helper()
			server, err := Open(Config{Listen: "127.0.0.1:0", Data: data, Log: slog.New(slog.DiscardHandler)})
			check.Must(t, err)
			check.Must(t, server.Close(context.Background()))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(t.TempDir(), "data")
			check.Must(t, os.Mkdir(data, 0o700))
			fixtures.TableFile(t, filepath.Join(data, DatabaseFile))
			fixtures.KeyAt(t, filepath.Join(data, KeyFile))
			removed := map[string]bool{}
			for dir, gone := range map[string]bool{
				filepath.Join(data, "backup-123"): c.backups, filepath.Join(data, "backup-of-mine"): false,
				filepath.Join(data, ".slipway-restoring-123"): name == "the next start",
				data + "-restoring-123":                       c.restores, data + "-restoring-mine": false,
			} {
				check.Must(t, os.Mkdir(dir, 0o700))
				check.Must(t, os.WriteFile(filepath.Join(dir, DatabaseFile), nil, 0o600))
				removed[dir] = gone
			}
			mine := filepath.Join(data, "backup-20260101")
			check.Must(t, os.Mkdir(mine, 0o700))
			check.Must(t, os.WriteFile(filepath.Join(mine, "all.tar.gz"), nil, 0o600))
			removed[mine] = false
			for _, s := range []scratch{backupsOf(data), restoringTo(data), restoringIn(data)} {
				dir, held, err := s.make()
				check.Must(t, err)
				t.Cleanup(func() { check.Must(t, held.Close()) })
				removed[dir] = false
			}
			c.act(t, data)
			for dir, want := range removed {
				if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) != want {
					t.Errorf("%s: %v, want removed: %v", filepath.Base(dir), err, want)
				}
			}
		})
	}
}
