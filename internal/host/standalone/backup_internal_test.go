package standalone

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAFileThatIsRewrittenWhileItIsCopied is as long as it was, and the files after it are whole.
func TestAFileThatIsRewrittenWhileItIsCopied(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	check.Must(t, os.WriteFile(path, []byte(strings.Repeat("x", 10_000)), 0o600))
	file, err := os.Open(path)
	check.Must(t, err)
	defer file.Close()
	info, err := file.Stat()
	check.Must(t, err)
	check.Must(t, os.Truncate(path, 10))
	var packed bytes.Buffer
	b := backup{t.Context(), tar.NewWriter(&packed), func(name string, why error) { t.Errorf("skipped %s: %v", name, why) }}
	check.Must(t, b.addOpen(file, info, "file"))
	check.Must(t, b.add(path, "again"))
	check.Must(t, b.archive.Close())
	entries := tar.NewReader(&packed)
	for _, want := range []string{strings.Repeat("x", 10) + strings.Repeat("\x00", 9990), strings.Repeat("x", 10)} {
		header, err := entries.Next()
		check.Must(t, err)
		if got, err := io.ReadAll(entries); err != nil || string(got) != want {
			t.Errorf("%s has %d bytes, %v", header.Name, len(got), err)
		}
	}
}
