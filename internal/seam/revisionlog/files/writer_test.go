package files_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAnAgentThatPrintsForEver writes more than a log keeps.
func TestAnAgentThatPrintsForEver(t *testing.T) {
	t.Parallel()
	dir, revision := t.TempDir(), newRevision()
	logs := open(t, dir)
	w := writer(t, logs, revision)
	filler := strings.Repeat("x", 30<<10)
	const lines = 1500 // about 44 MB
	for i := range lines {
		_, err := fmt.Fprintf(w, "%d %s\n", i, filler)
		check.Must(t, err)
	}
	check.Must(t, w.Close())

	names, err := filepath.Glob(filepath.Join(dir, revision, "*"))
	check.Must(t, err)
	size := int64(0)
	for _, name := range names {
		info, err := os.Stat(name)
		check.Must(t, err)
		size += info.Size()
	}
	if len(names) != 3 || size > 30<<20 || size < 20<<20 {
		t.Errorf("%d files with %d bytes; want 3 with 20 to 30 MB", len(names), size)
	}

	first, want, after := -1, -1, ""
	for more := true; more; {
		page := read(t, logs, revision, after, 100)
		for i, line := range page.Lines {
			if after == "" && i == 0 {
				if line.Level != revisionlog.Warning || !strings.Contains(line.Message, "older output were dropped: a log keeps its last 30 MB") {
					t.Errorf("the log begins with %q", line.Message)
				}
				continue
			}
			got := 0
			_, err := fmt.Sscan(line.Message, &got)
			check.Must(t, err)
			if want < 0 {
				first, want = got, got
			}
			if got != want {
				t.Fatalf("line %d follows line %d", got, want-1)
			}
			want++
		}
		after, more = page.Next, page.More
	}
	if want != lines {
		t.Errorf("the last line read is %d, want %d", want-1, lines-1)
	}
	if got := messages(t, logs, revision, lines); len(got) != lines-first+1 || !strings.Contains(got[0], "were dropped") || !strings.HasPrefix(got[1], fmt.Sprint(first, " ")) {
		t.Errorf("backward there are %d lines, want the same %d", len(got), lines-first+1)
	}
	if reads := allocated(t, func() { tail(t, logs, revision, 10) }); reads > 2<<20 {
		t.Errorf("the last 10 lines cost %d bytes of memory", reads)
	}
}

// allocated is how many bytes of memory a function allocates.
func allocated(t *testing.T, f func()) uint64 {
	t.Helper()
	return uint64(testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f()
		}
	}).AllocedBytesPerOp())
}

// TestOutputGoesOnAfterAFailedWrite keeps the next file of a log from being made for a while.
func TestOutputGoesOnAfterAFailedWrite(t *testing.T) {
	t.Parallel()
	dir, revision := t.TempDir(), newRevision()
	logs := open(t, dir)
	w := writer(t, logs, revision)
	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, revision, fmt.Sprintf("deploy.%020d.jsonl", 0)))
		check.Must(t, err)
		return info.Size()
	}
	for size() < 10<<20-31<<10 {
		_, err := fmt.Fprintln(w, strings.Repeat("x", 30<<10))
		check.Must(t, err)
	}
	inTheWay := filepath.Join(dir, revision, fmt.Sprintf("deploy.%020d.jsonl", size()))
	check.Must(t, os.Mkdir(inTheWay, 0o700))
	lost := strings.Repeat(strings.Repeat("y", 32000)+"\n", 3)
	if n, err := io.Copy(w, struct{ io.Reader }{strings.NewReader(lost)}); err != nil || n != int64(len(lost)) {
		t.Errorf("the copying ends after %d of %d bytes: %v", n, len(lost), err)
	}
	check.Must(t, os.Remove(inTheWay))
	_, err := fmt.Fprintln(w, "later")
	check.Must(t, err)
	if err := w.Close(); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("got %v", err)
	}
	wantMessages(t, messages(t, logs, revision, 1), "later")
}
