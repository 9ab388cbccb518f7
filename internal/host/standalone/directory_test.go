package standalone_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestNobodyElseEntersTheDataDirectory checks what other users of the machine could read.
func TestNobodyElseEntersTheDataDirectory(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	check.Must(t, os.Mkdir(data, 0o755))
	check.Must(t, os.Mkdir(filepath.Join(data, "lost+found"), 0o700)) // as on a new disk
	check.Must(t, os.Chmod(data, 0o755))
	for range 2 {
		_, stop := serve(t, data)
		for _, name := range []string{".", standalone.DatabaseFile, standalone.DatabaseFile + "-wal", standalone.DatabaseFile + "-shm", standalone.KeyFile} {
			if info, err := os.Stat(filepath.Join(data, name)); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %v (%v)", name, info.Mode(), err)
			}
		}
		stop()
		// An earlier version made it with this mode.
		check.Must(t, os.Chmod(filepath.Join(data, standalone.DatabaseFile), 0o644))
		check.Must(t, os.Chmod(data, 0o755))
	}
}

// TestADirectoryOfOthersIsNotTaken uses a directory like another user's home.
func TestADirectoryOfOthersIsNotTaken(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	check.Must(t, os.Chmod(data, 0o755))
	check.Must(t, os.WriteFile(filepath.Join(data, "theirs"), nil, 0o600))
	config := standalone.Config{Listen: "127.0.0.1:0", Data: data, Log: slog.New(slog.DiscardHandler)}
	if _, err := standalone.Open(config); err == nil || !strings.Contains(err.Error(), "open to other users") {
		t.Errorf("got %v", err)
	}
	if info, err := os.Stat(data); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("its mode is %v (%v)", info.Mode(), err)
	}
	check.Must(t, os.Chmod(data, 0o700))
	server, err := standalone.Open(config)
	check.Must(t, err)
	check.Must(t, server.Close(t.Context()))
}

// TestALostKeyIsNotReplaced removes the key file of a directory with records. The server starts
// again when the file is back.
func TestALostKeyIsNotReplaced(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	_, stop := serve(t, data)
	stop()
	file := filepath.Join(data, standalone.KeyFile)
	check.Must(t, os.Rename(file, file+"-lost"))
	config := standalone.Config{Listen: "127.0.0.1:0", Data: data, Log: slog.New(slog.DiscardHandler)}
	// Users of workspaces pass through the directory of a server that is root.
	for _, mode := range []fs.FileMode{0o711, 0o700} {
		check.Must(t, os.Chmod(data, mode))
		server, err := standalone.Open(config)
		if !errors.Is(err, standalone.ErrKeyLost) || !strings.Contains(err.Error(), "put "+file+" back") {
			t.Errorf("mode %v: got %v, want %v", mode, err, standalone.ErrKeyLost)
		}
		if err == nil {
			check.Must(t, server.Close(t.Context()))
		}
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a new key (%v)", err)
	}
	check.Must(t, os.Rename(file+"-lost", file))
	credentials, stop := serve(t, data)
	defer stop()
	wantStatus(t, "with the key that was put back", "GET", credentials.BaseURL+"/v2/deployments",
		map[string]string{"X-Api-Key": credentials.APIKey, "X-Tenant-Id": credentials.TenantID}, http.StatusOK)
}

// TestOneBrokenItemDoesNotKeepTheServerDown damages the stored record of a deployment that
// needs work.
func TestOneBrokenItemDoesNotKeepTheServerDown(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	credentials, stop := serve(t, data)
	stop()
	tb := open(t, data)
	broken := keys.Deployment(credentials.TenantID, "broken")
	check.Must(t, tb.Transact(t.Context(), table.Put{Item: table.Item{
		Key: broken, Attrs: table.Attrs{"kind": "another"},
		Index: map[table.Index]table.Key{table.ByDue: keys.RolloutEntry("broken", clock.System())},
	}}))
	check.Must(t, tb.Close())
	credentials, stop = serve(t, data)
	defer stop()
	wantStatus(t, "after a start with a broken item", "GET", credentials.BaseURL+"/v2/deployments",
		map[string]string{"X-Api-Key": credentials.APIKey, "X-Tenant-Id": credentials.TenantID}, http.StatusOK)
}
