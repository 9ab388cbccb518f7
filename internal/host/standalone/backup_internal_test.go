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
	b := backup{dir, tar.NewWriter(&packed), func(name string, why error) { t.Errorf("skipped %s: %v", name, why) }}
	check.Must(t, b.addOpen(file, info, "file"))
	check.Must(t, inDir(dir, func(root *os.Root) error { return b.add(root, "file") }))
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

// TestAttackBackupOfAFileThatBecomesALink has links that an agent puts in the place of a file after
// the backup has looked at it. The backup does without the file.
func TestAttackBackupOfAFileThatBecomesALink(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	check.Must(t, os.WriteFile(outside, []byte("the key\n"), 0o600))
	var packed bytes.Buffer
	skipped := 0
	b := backup{dir, tar.NewWriter(&packed), func(string, error) { skipped++ }}
	targets := []string{outside, "../" + filepath.Base(filepath.Dir(outside)) + "/secret", "link"}
	for _, target := range targets {
		link := filepath.Join(dir, "link")
		check.Must(t, os.Symlink(target, link))
		if err := inDir(dir, func(root *os.Root) error { return b.addFile(root, builds+"link") }); err != nil {
			t.Errorf("a link to %s ends the backup: %v", target, err)
		}
		check.Must(t, os.Remove(link))
	}
	check.Must(t, b.archive.Flush())
	if packed.Len() != 0 || skipped != len(targets) {
		t.Errorf("the archive has %d bytes, and %d files are skipped", packed.Len(), skipped)
	}
}
