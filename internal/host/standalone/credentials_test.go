package standalone_test

import (
	"os"
	"path/filepath"
	"testing"

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
