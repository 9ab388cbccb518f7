package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAFileWithoutContexts takes a context, also if a person or a program has written null for
// none.
func TestAFileWithoutContexts(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", dir)
	file, err := contextsFile()
	check.Must(t, err)
	check.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	for _, text := range []string{`{}`, `{"contexts":null}`, `null`} {
		check.Must(t, os.WriteFile(file, []byte(text), 0o600))
		check.Must(t, changeContexts(t.Context(), func(all *contexts) error {
			all.Contexts["server"] = savedServer{URL: "http://server.test"}
			return nil
		}))
		all, err := readContexts()
		if err != nil || all.Contexts["server"].URL != "http://server.test" {
			t.Errorf("%s: got %+v (%v)", text, all, err)
		}
	}
}
