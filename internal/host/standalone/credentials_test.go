package standalone_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestWriteCredentials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := standalone.Credentials{BaseURL: "http://127.0.0.1:1", APIKey: "key", TenantID: "tenant"}
	check.Must(t, standalone.WriteCredentials(dir, standalone.Credentials{}))
	check.Must(t, standalone.WriteCredentials(dir, want))
	if got, err := standalone.ReadCredentials(dir); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	info, err := os.Stat(filepath.Join(dir, standalone.CredentialsFile))
	check.Must(t, err)
	if info.Mode() != 0o600 {
		t.Errorf("the file's mode is %s", info.Mode())
	}
}

// TestTheSameCredentialsNeedNoRoom writes credentials twice, which leaves the file in its place and
// shows that a server has become ready, and then other credentials.
func TestTheSameCredentialsNeedNoRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, same := filepath.Join(dir, standalone.CredentialsFile), standalone.Credentials{BaseURL: "http://127.0.0.1:1", APIKey: "key", TenantID: "tenant"}
	write := func(c standalone.Credentials) os.FileInfo {
		check.Must(t, standalone.WriteCredentials(dir, c))
		info, err := os.Stat(file)
		check.Must(t, err)
		return info
	}
	write(same)
	check.Must(t, errors.Join(os.Chmod(file, 0o644), os.Chtimes(file, time.Time{}, time.Unix(0, 0))))
	first, err := os.Stat(file)
	check.Must(t, err)
	again := write(same)
	if !os.SameFile(first, again) || again.Mode() != 0o600 {
		t.Errorf("the same credentials are written to another file, or its mode is %s", again.Mode())
	}
	changed := write(standalone.Credentials{BaseURL: "http://127.0.0.1:2"})
	if !standalone.Renewed(nil, first) || !standalone.Renewed(first, again) || !standalone.Renewed(again, changed) || standalone.Renewed(changed, changed) {
		t.Error("it is not recognized when a server has become ready")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the directory holds %v (%v)", left, err)
	}
}
