package docker

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-run/slipway/internal/base/id"
)

// TestTheServersNameIsWrittenOnce keeps a name twice. A name that is there needs no room on the
// disk.
func TestTheServersNameIsWrittenOnce(t *testing.T) {
	t.Parallel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "containers")
	e := &engine{cfg: Config{Dir: dir, Log: slog.New(slog.DiscardHandler)}}
	must(e.remember())
	if !id.Valid(e.server) {
		t.Fatalf("the name is %q", e.server)
	}
	must(e.keepName())
	first, err := os.Stat(e.nameFile())
	must(err)
	must(e.keepName())
	again, err := os.Stat(e.nameFile())
	must(err)
	if !os.SameFile(first, again) {
		t.Error("the file was replaced")
	}
	must(os.WriteFile(e.nameFile(), nil, 0o600))
	must(e.keepName())
	if text, err := os.ReadFile(e.nameFile()); err != nil || string(text) != e.server+"\n" {
		t.Errorf("an empty file becomes %q (%v)", text, err)
	}
}
