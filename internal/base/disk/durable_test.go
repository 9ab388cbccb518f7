package disk_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestReplaceLeavesNothingElse replaces a file, and fails to replace a directory.
func TestReplaceLeavesNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	for _, text := range []string{"first", ""} {
		check.Must(t, disk.Replace(file, []byte(text), 0o640))
		got, err := os.ReadFile(file)
		info, statErr := os.Stat(file)
		if err != nil || statErr != nil || string(got) != text || info.Mode() != 0o640 {
			t.Errorf("got %q, %v (%v, %v)", got, info, err, statErr)
		}
	}
	check.Must(t, os.MkdirAll(filepath.Join(dir, "directory", "full"), 0o700))
	if err := disk.Replace(filepath.Join(dir, "directory"), nil, 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("got %v (%v)", entries, err)
	}
	if err := disk.Sync(dir); err != nil {
		t.Error(err)
	}
	if disk.Sync(filepath.Join(dir, "nothing")) == nil {
		t.Error("a directory that does not exist is synced")
	}
}
