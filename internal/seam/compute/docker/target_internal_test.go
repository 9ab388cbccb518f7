package docker

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-run/slipway/internal/base/id"
	checks "github.com/slipway-run/slipway/internal/test/check"
)

// TestTheServersNameIsWrittenOnce keeps a name twice. A name that is there needs no room on the
// disk.
func TestTheServersNameIsWrittenOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "containers")
	e := &engine{cfg: Config{Dir: dir, Log: slog.New(slog.DiscardHandler)}}
	checks.Must(t, e.remember())
	if !id.Valid(e.server) {
		t.Fatalf("the name is %q", e.server)
	}
	checks.Must(t, e.keepName())
	first, err := os.Stat(e.nameFile())
	checks.Must(t, err)
	checks.Must(t, e.keepName())
	again, err := os.Stat(e.nameFile())
	checks.Must(t, err)
	if !os.SameFile(first, again) {
		t.Error("the file was replaced")
	}
	checks.Must(t, os.WriteFile(e.nameFile(), nil, 0o600))
	checks.Must(t, e.keepName())
	if text, err := os.ReadFile(e.nameFile()); err != nil || string(text) != e.server+"\n" {
		t.Errorf("an empty file becomes %q (%v)", text, err)
	}
}
