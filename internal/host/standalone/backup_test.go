package standalone_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/child/childtest"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// newData makes a data directory with empty files.
func newData(t *testing.T, names ...string) (data string) {
	t.Helper()
	data = filepath.Join(t.TempDir(), "data")
	check.Must(t, os.Mkdir(data, 0o700))
	fixtures.TableFile(t, filepath.Join(data, standalone.DatabaseFile))
	fixtures.KeyAt(t, filepath.Join(data, standalone.KeyFile))
	for _, name := range names {
		check.Must(t, os.MkdirAll(filepath.Join(data, filepath.Dir(name)), 0o700))
		check.Must(t, os.WriteFile(filepath.Join(data, name), nil, 0o600))
	}
	return data
}

// filesIn returns the paths of the files in a directory, as far down as the system can name them.
func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	check.Must(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		if errors.Is(err, syscall.ENAMETOOLONG) {
			return nil
		}
		return err
	}))
	return names
}

// TestAttackBackupOfWhatAgentsLeave has files with paths that are too long for the system, files
// that nobody may read, and files that the next start of the server erases.
func TestAttackBackupOfWhatAgentsLeave(t *testing.T) {
	t.Parallel()
	data := newData(t, "agents/releases/r/home/file", "agents/s/x/s", "agents/erased/1/file", "builds/erased/1/file", "builds/revisions/r/src/closed", "builds/revisions/r/src/file", "logs/file")
	src := filepath.Join(data, "builds", "revisions", "r", "src")
	check.Must(t, errors.Join(syscall.Mkfifo(filepath.Join(src, "pipe"), 0o600), os.Chmod(filepath.Join(src, "closed"), 0)))
	for _, dir := range []string{filepath.Join(data, "agents", "releases"), src} {
		check.Must(t, childtest.Deepen(dir, 30))
		t.Cleanup(func() { check.Must(t, child.RemoveFiles(dir)) })
	}
	var archive bytes.Buffer
	var skipped []string
	check.Must(t, standalone.Backup(t.Context(), data, &archive, func(name string, _ error) { skipped = append(skipped, name) }))
	restored := filepath.Join(t.TempDir(), "restored")
	_, err := standalone.Restore(t.Context(), &archive, restored)
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, child.RemoveFiles(restored)) })
	want := []string{"builds/revisions/r/src/closed", "builds/revisions/r/src/file", "logs/file", standalone.KeyFile, standalone.DatabaseFile}
	if os.Geteuid() != 0 {
		want = want[1:]
	}
	if diff := cmp.Diff(want, filesIn(t, restored)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	deep := func(name string) bool { return strings.HasPrefix(name, "builds/revisions/r/src/"+childtest.Deep) }
	if !slices.ContainsFunc(skipped, deep) || len(skipped) != 2-len(want)%2 {
		t.Errorf("skipped %d files", len(skipped))
	}
}

// TestAttackBackupOfHoles has a file that takes no disk, and is as large as the file system allows:
// a backup that wrote its zeros would not end. A file with small holes is in the backup.
func TestAttackBackupOfHoles(t *testing.T) {
	t.Parallel()
	data := newData(t, "builds/revisions/r/src/huge", "builds/revisions/r/src/small")
	src := filepath.Join(data, "builds", "revisions", "r", "src")
	const most = 1 << 43
	check.Must(t, errors.Join(os.Truncate(filepath.Join(src, "huge"), most), os.Truncate(filepath.Join(src, "small"), 100<<10)))
	var archive bytes.Buffer
	var skipped []string
	check.Must(t, standalone.Backup(t.Context(), data, bounded{&archive}, func(name string, _ error) { skipped = append(skipped, name) }))
	if diff := cmp.Diff([]string{"builds/revisions/r/src/huge"}, skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	restored := filepath.Join(t.TempDir(), "restored")
	_, err := standalone.Restore(t.Context(), &archive, restored)
	check.Must(t, err)
	if info, err := os.Stat(filepath.Join(restored, "builds", "revisions", "r", "src", "small")); err != nil || info.Size() != 100<<10 {
		t.Errorf("the other file is %v, %v", info, err)
	}
}

// TestAttackBackupOfADirectoryThatBecomesALink has an agent that puts a link in the place of a
// directory while the backup copies the file before it. The backup has nothing of what the link
// leads to, and can be restored.
func TestAttackBackupOfADirectoryThatBecomesALink(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	check.Must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("the key\n"), 0o600))
	for name, target := range map[string]string{"outside": outside, "inside": "../../../logs"} {
		data := newData(t, "builds/revisions/r/large", "builds/revisions/r/src/file", "logs/secret")
		r := filepath.Join(data, "builds", "revisions", "r")
		content := make([]byte, 1<<20)
		rand.NewChaCha8([32]byte{}).Read(content) // never returns an error
		check.Must(t, os.WriteFile(filepath.Join(r, "large"), content, 0o600))
		swap := func() {
			check.Must(t, errors.Join(os.Rename(filepath.Join(r, "src"), filepath.Join(data, "away")), os.Symlink(target, filepath.Join(r, "src"))))
		}
		var archive bytes.Buffer
		check.Must(t, standalone.Backup(t.Context(), data, &meddled{Buffer: &archive, at: 1 << 19, do: swap}, func(string, error) {}))
		restored := filepath.Join(t.TempDir(), "restored")
		if _, err := standalone.Restore(t.Context(), &archive, restored); err != nil {
			t.Errorf("%s: the backup cannot be restored: %v", name, err)
			continue
		}
		want := []string{"builds/revisions/r/large", "builds/revisions/r/src", "logs/secret", standalone.KeyFile, standalone.DatabaseFile}
		if diff := cmp.Diff(want, filesIn(t, restored)); diff != "" {
			t.Errorf("%s: files (-want +got):\n%s", name, diff)
		}
	}
}

// meddled does something once, when it has got so many bytes.
type meddled struct {
	*bytes.Buffer

	at int
	do func()
}

func (m *meddled) Write(data []byte) (int, error) {
	if m.do != nil && m.Len() > m.at {
		m.do()
		m.do = nil
	}
	return m.Buffer.Write(data)
}

// bounded refuses a backup that is larger than its test expects.
type bounded struct{ *bytes.Buffer }

func (b bounded) Write(data []byte) (int, error) {
	if b.Len() > 1<<20 {
		return 0, errors.New("the backup does not end")
	}
	return b.Buffer.Write(data)
}

// TestAnInterruptedBackupEnds in the middle of a large file.
func TestAnInterruptedBackupEnds(t *testing.T) {
	t.Parallel()
	data := newData(t)
	large := make([]byte, 8<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(large) // it never fails
	check.Must(t, os.WriteFile(filepath.Join(data, "large"), large, 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	archive := &meddled{new(bytes.Buffer), 1 << 20, cancel}
	err := standalone.Backup(ctx, data, archive, func(string, error) {})
	if !errors.Is(err, context.Canceled) || archive.Len() > 2<<20 {
		t.Errorf("got %v after %d bytes", err, archive.Len())
	}
}

// TestABackupNeedsTheServersOwnFiles: only files that agents may change can be missing.
func TestABackupNeedsTheServersOwnFiles(t *testing.T) {
	t.Parallel()
	data := newData(t)
	check.Must(t, childtest.Deepen(data, 30))
	t.Cleanup(func() { check.Must(t, child.RemoveFiles(filepath.Join(data, childtest.Deep))) })
	err := standalone.Backup(t.Context(), data, new(bytes.Buffer), func(string, error) {})
	if !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Errorf("got %v", err)
	}
}

// TestADamagedBackupIsNotRestored flips one bit at a time of what a backup holds of a file, and of
// its checksum.
func TestADamagedBackupIsNotRestored(t *testing.T) {
	t.Parallel()
	data := newData(t)
	content := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{}).Read(content) // never returns an error
	check.Must(t, os.WriteFile(filepath.Join(data, "file"), content, 0o600))
	var archive bytes.Buffer
	check.Must(t, standalone.Backup(t.Context(), data, &archive, func(string, error) {}))
	whole := archive.Bytes()
	at := bytes.Index(whole, content[len(content)/2:][:100]) // random bytes are stored as they are
	if at < 0 {
		t.Fatal("the content is compressed")
	}
	for name, flipped := range map[string]int{"content": at, "checksum": len(whole) - 8} {
		damaged := bytes.Clone(whole)
		damaged[flipped] ^= 1
		parent := t.TempDir()
		if _, err := standalone.Restore(t.Context(), bytes.NewReader(damaged), filepath.Join(parent, "restored")); !errors.Is(err, gzip.ErrChecksum) {
			t.Errorf("%s: got error %v, want %v", name, err, gzip.ErrChecksum)
		}
		if left := filesIn(t, parent); len(left) > 0 {
			t.Errorf("%s: the files %v are left", name, left)
		}
	}
}
