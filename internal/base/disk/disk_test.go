package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestRoomAndReserve(t *testing.T) {
	t.Parallel()
	const mib, gib = int64(1) << 20, int64(1) << 30
	for name, c := range map[string]struct {
		keep          disk.Keep
		free, total   int64
		room, reserve bool
	}{
		"more than is kept":       {disk.Default, gib, 100 * gib, true, true},
		"what is kept":            {disk.Default, 512 * mib, 100 * gib, true, true},
		"less than is kept":       {disk.Default, 511 * mib, 100 * gib, false, true},
		"what ends of work need":  {disk.Default, 127 * mib, 100 * gib, false, false},
		"a small disk with room":  {disk.Default, 60 * mib, gib, true, true},
		"a small disk":            {disk.Default, 50 * mib, gib, false, true},
		"a share of a large disk": {disk.Keep{Percent: 10}, 9 * gib, 100 * gib, false, true},
		"bytes":                   {disk.Keep{Bytes: 2 * gib}, gib, 10 * gib, false, true},
		"nothing is kept":         {disk.Keep{Bytes: -1}, 0, gib, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			look := func(string) (disk.Usage, error) { return disk.Usage{Free: c.free, Total: c.total}, nil }
			space := disk.Open("data", c.keep, look, slog.New(slog.DiscardHandler))
			for what, got := range map[string]struct {
				err  error
				want bool
			}{"room": {space.Room(), c.room}, "reserve": {space.Reserve(), c.reserve}} {
				if (got.err == nil) != got.want || got.err != nil && !fault.Is(got.err, fault.NoRoom) {
					t.Errorf("%s: got %v, want none: %v", what, got.err, got.want)
				}
			}
		})
	}
}

// TestFilesAreKeptToo on a file system with room for bytes and for few more files.
func TestFilesAreKeptToo(t *testing.T) {
	t.Parallel()
	const gib = int64(1) << 30
	for name, c := range map[string]struct {
		keep          disk.Keep
		free, files   int64
		room, reserve bool
	}{
		"more than is kept":             {disk.Default, 40_000, 6_400_000, true, true},
		"less than is kept":             {disk.Default, 30_000, 6_400_000, false, true},
		"what ends of work need":        {disk.Default, 7_000, 6_400_000, false, false},
		"no file":                       {disk.Default, 0, 3_000, false, false},
		"a share":                       {disk.Keep{Percent: 10}, 9, 100, false, true},
		"a file system without numbers": {disk.Default, 0, 0, true, true},
		"nothing is kept":               {disk.Keep{Bytes: -1}, 0, 100, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			look := func(string) (disk.Usage, error) {
				return disk.Usage{Free: 50 * gib, Total: 100 * gib, FreeFiles: c.free, Files: c.files}, nil
			}
			space := disk.Open("data", c.keep, look, slog.New(slog.DiscardHandler))
			for what, got := range map[string]struct {
				err  error
				want bool
			}{"room": {space.Room(), c.room}, "reserve": {space.Reserve(), c.reserve}} {
				if (got.err == nil) != got.want || got.err != nil && (!fault.Is(got.err, fault.NoRoom) || !strings.Contains(got.err.Error(), "few more files")) {
					t.Errorf("%s: got %v, want none: %v", what, got.err, got.want)
				}
			}
		})
	}
}

// TestTheEndOfTheRoomIsLoggedOnce, however many callers ask.
func TestTheEndOfTheRoomIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	usage, failure := disk.Usage{Total: 1000}, error(nil)
	space := disk.Open("data", disk.Keep{Bytes: 100}, func(string) (disk.Usage, error) { return usage, failure }, slog.New(slog.NewTextHandler(&said, nil)))
	for _, free := range []int64{200, 50, 40, 200, 300, 10} {
		usage.Free = free
		_, _ = space.Room(), space.Reserve()
	}
	failure = errors.New("no such disk")
	for range 3 {
		if err := space.Room(); err != nil {
			t.Errorf("a disk that cannot be looked at: got %v, want room", err)
		}
	}
	for words, want := range map[string]int{"nearly full": 2, "has room again": 1, "cannot be read": 1} {
		if got := strings.Count(said.String(), words); got != want {
			t.Errorf("%q is said %d times, want %d:\n%s", words, got, want, &said)
		}
	}
}

func TestTheSystemIsAskedOnceASecond(t *testing.T) {
	t.Parallel()
	now, looks := time.Unix(1000, 0), 0
	look := disk.Cached(func(string) (disk.Usage, error) {
		looks++
		return disk.Usage{}, nil
	}, func() time.Time { return now })
	for _, step := range []time.Duration{0, 900 * time.Millisecond, 200 * time.Millisecond, 0, -time.Hour, 0} {
		now = now.Add(step)
		if _, err := look("data"); err != nil {
			t.Fatal(err)
		}
	}
	if looks != 3 {
		t.Errorf("looked %d times, want 3", looks)
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	for _, full := range []error{syscall.ENOSPC, fmt.Errorf("write: %w", syscall.EDQUOT), disk.ErrFull} {
		if !fault.Is(disk.Named(full), fault.NoRoom) {
			t.Errorf("%v: got %v, want that there is no room", full, disk.Named(full))
		}
	}
	if got := disk.Named(syscall.EIO); got != error(syscall.EIO) || disk.Named(nil) != nil {
		t.Errorf("another error: got %v", got)
	}
}

// TestTheSystemIsAsked about this directory.
func TestTheSystemIsAsked(t *testing.T) {
	t.Parallel()
	everything := disk.Keep{Percent: 100}
	if err := disk.Open(t.TempDir(), everything, nil, slog.New(slog.DiscardHandler)).Room(); !fault.Is(err, fault.NoRoom) {
		t.Errorf("got %v, want that not all of the disk is free", err)
	}
	if usage, err := disk.Statfs("/dev/shm"); err == nil && usage.Files > 0 && (usage.FreeFiles <= 0 || usage.FreeFiles >= usage.Files) {
		t.Errorf("a file system in memory: got %+v, want that some of its files are free", usage)
	}
}

// TestFilesThatTakeNoBlocksOrHaveLongPathsCount hides files from a walk by their size and depth.
func TestFilesThatTakeNoBlocksOrHaveLongPathsCount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := disk.Taken(dir, 1<<30)
	for i := range 10 {
		check.Must(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600))
	}
	if got := disk.Taken(dir, 1<<30) - before; got < 10*4096 {
		t.Errorf("10 empty files count %d bytes", got)
	}
	root, err := os.OpenRoot(dir)
	for range 30 {
		check.Must(t, err)
		t.Cleanup(func() { _ = root.Close() })
		name := strings.Repeat("x", 250)
		check.Must(t, root.Mkdir(name, 0o700))
		root, err = root.OpenRoot(name)
	}
	if got := disk.Taken(dir, 1<<30); got <= 1<<30 {
		t.Errorf("a tree that is too deep counts %d bytes", got)
	}
}
