package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestEnvironmentsShareFiles has two environments with equal and different files. What the new
// environment does not have in the same way stays its own, and no link leads out of it.
func TestEnvironmentsShareFiles(t *testing.T) {
	t.Parallel()
	all := t.TempDir()
	old, made := filepath.Join(all, "old", staged), filepath.Join(all, ".new-1", staged)
	text := strings.Repeat("x", 70<<10)
	write := func(dir, name, text string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(dir, name)
		check.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		check.Must(t, os.WriteFile(path, []byte(text), mode))
	}
	outside := filepath.Join(t.TempDir(), "outside")
	for _, dir := range []string{old, made} {
		write(dir, "lib/same.so", text, 0o644)
		write(dir, "lib/small.py", "x", 0o644)
		write(dir, "lib/content.so", text[:len(text)-1]+filepath.Base(filepath.Dir(dir))[:1], 0o644)
	}
	write(old, "lib/mode.so", text, 0o600)
	write(made, "lib/mode.so", text, 0o644)
	write(old, "lib/length.so", text+"x", 0o644)
	write(made, "lib/length.so", text, 0o644)
	write(made, "lib/alone.so", text, 0o644)
	write(outside, "linked/a.so", text, 0o644)
	write(made, "linked/a.so", text, 0o644)
	write(old, "target.so", text, 0o644)
	check.Must(t, os.Symlink("target.so", filepath.Join(made, "target.so")))
	check.Must(t, os.Symlink(filepath.Join(outside, "linked"), filepath.Join(old, "linked")))
	check.Must(t, shareFiles(t.Context(), all, made))
	for name, want := range map[string]bool{"lib/same.so": true, "lib/small.py": false, "lib/content.so": false, "lib/mode.so": false, "lib/length.so": false} {
		mine, err := os.Stat(filepath.Join(made, name))
		check.Must(t, err)
		theirs, err := os.Stat(filepath.Join(old, name))
		check.Must(t, err)
		if got := os.SameFile(mine, theirs); got != want {
			t.Errorf("%s is shared: %v", name, got)
		}
	}
	within, err := os.Stat(filepath.Join(made, "linked", "a.so"))
	check.Must(t, err)
	if beyond, err := os.Stat(filepath.Join(outside, "linked", "a.so")); err != nil || os.SameFile(within, beyond) {
		t.Errorf("a file outside of the environments is shared, %v", err)
	}
	if link, err := os.Readlink(filepath.Join(made, "target.so")); err != nil || link != "target.so" {
		t.Errorf("a link became %q, %v", link, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := shareFiles(over, all, made); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the build: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(made, "*", "*.shared")); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// TestAttackEnvironmentsWithALargeFile has a build that ends while such a file is read: sharing
// ends within the file, whose size only the disk bounds.
func TestAttackEnvironmentsWithALargeFile(t *testing.T) {
	t.Parallel()
	all := t.TempDir()
	made := filepath.Join(all, ".new-1", staged)
	for _, dir := range []string{filepath.Join(all, "old", staged), made} {
		check.Must(t, errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "large"), nil, 0o600), os.Truncate(filepath.Join(dir, "large"), 4<<30)))
	}
	over := &ending{Context: t.Context(), left: 10}
	if err := shareFiles(over, all, made); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// ending is a context that is over when it has been asked some times.
type ending struct {
	context.Context

	left int
}

func (e *ending) Err() error {
	if e.left--; e.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestTheEraserLeavesWhatABuildIsAboutToPublish, and does not count it among what is kept.
func TestTheEraserLeavesWhatABuildIsAboutToPublish(t *testing.T) {
	t.Parallel()
	all, b := t.TempDir(), &Builder{cfg: Config{Dir: t.TempDir()}}
	long := time.Now().Add(-2 * homeRest)
	for name, used := range map[string]time.Time{"oldest": long, ".new-broken": long.Add(time.Second), "kept": time.Now().Add(-2 * time.Hour), ".new-1": time.Now()} {
		check.Must(t, os.Mkdir(filepath.Join(all, name), 0o700))
		check.Must(t, os.Chtimes(filepath.Join(all, name), used, used))
	}
	check.Must(t, b.keepNewest(all, 1))
	left, err := filepath.Glob(filepath.Join(all, "*"))
	if want := []string{filepath.Join(all, ".new-1"), filepath.Join(all, "kept")}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %v, %v; want %v", left, err, want)
	}
}
