package revisionlog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/id"
	"github.com/slipway-run/slipway/internal/revisionlog"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func open(t *testing.T, dir string) *revisionlog.Logs {
	t.Helper()
	logs, err := revisionlog.Open(dir, func() time.Time { return noon })
	must(t, err)
	return logs
}

func newRevision() string { return id.New(time.Now()) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func writer(t *testing.T, logs *revisionlog.Logs, revision string, secrets ...string) *revisionlog.Writer {
	t.Helper()
	w, err := logs.Writer(revision, revisionlog.Deploy, secrets...)
	must(t, err)
	return w
}

// write writes each piece by itself and closes the writer.
func write(t *testing.T, logs *revisionlog.Logs, revision string, pieces ...string) {
	t.Helper()
	w := writer(t, logs, revision)
	for _, piece := range pieces {
		n, err := w.Write([]byte(piece))
		must(t, err)
		if n != len(piece) {
			t.Fatalf("Write took %d of %d bytes", n, len(piece))
		}
	}
	must(t, w.Close())
}

func messages(t *testing.T, logs *revisionlog.Logs, revision string, n int) []string {
	t.Helper()
	lines, err := logs.Tail(revision, revisionlog.Deploy, n)
	must(t, err)
	var got []string
	for _, line := range lines {
		got = append(got, line.Message)
	}
	return got
}

func wantMessages(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestWriterSplitsLines(t *testing.T) {
	t.Parallel()
	logs, revision := open(t, t.TempDir()), newRevision()
	write(t, logs, revision, "one\ntw", "o\r\n\nthr", "ee <&> \xff", "\xfe é\nlast")
	wantMessages(t, messages(t, logs, revision, 100), "one", "two", "", "three <&> \uFFFD é", "last")
	wantMessages(t, messages(t, logs, revision, 2), "three <&> \uFFFD é", "last")
	wantMessages(t, messages(t, logs, revision, 0))
}

func TestLinesOnDisk(t *testing.T) {
	t.Parallel()
	dir, revision := t.TempDir(), newRevision()
	logs := open(t, dir)
	w, err := logs.Writer(revision, revisionlog.Build, "open-sesame")
	must(t, err)
	_, err = w.Write([]byte("compiling\n"))
	must(t, err)
	must(t, w.Note(revisionlog.Error, "no %s for\nyou", "open-sesame"))
	must(t, w.Close())
	files, err := filepath.Glob(filepath.Join(dir, revision, "*"))
	must(t, err)
	if len(files) != 1 {
		t.Fatalf("got files %q, want one", files)
	}
	got, err := os.ReadFile(files[0])
	must(t, err)
	want := `{"timestamp":"2026-11-20T12:00:00.000000Z","level":"INFO","message":"compiling"}
{"timestamp":"2026-11-20T12:00:00.000000Z","level":"ERROR","message":"no *** for\nyou"}
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
	info, err := os.Stat(files[0])
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %04o, want 0600", info.Mode().Perm())
	}
	if w.Last() != "compiling" {
		t.Errorf("Last is %q, want only what the program wrote", w.Last())
	}
}

func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	logs, revision := open(t, t.TempDir()), newRevision()
	w := writer(t, logs, revision, "sesame", "open-sesame", "true", "first line\nsecond line\n", "")
	for _, piece := range []string{"open-ses", "ame and sesame and true\n", "first line\nsecond line\nfirst\n", "at the end: open-sesame"} {
		_, err := w.Write([]byte(piece))
		must(t, err)
	}
	must(t, w.Close())
	want := []string{"*** and *** and true", "***", "***", "first", "at the end: ***"}
	wantMessages(t, messages(t, logs, revision, 10), want...)
	if got := w.Last(); got != strings.Join(want, "\n") {
		t.Errorf("Last is %q", got)
	}
}

func TestLongLinesAreCut(t *testing.T) {
	t.Parallel()
	const limit, secret = 32 << 10, "open-sesame"
	for name, c := range map[string]struct{ line, want string }{
		"fits":                 {strings.Repeat("x", limit), strings.Repeat("x", limit)},
		"one too many":         {strings.Repeat("x", limit+1), strings.Repeat("x", limit) + " (cut)"},
		"very long":            {strings.Repeat("x", 1<<20), strings.Repeat("x", limit) + " (cut)"},
		"between characters":   {strings.Repeat("x", limit-1) + "éé", strings.Repeat("x", limit-1) + " (cut)"},
		"secret over the edge": {strings.Repeat("x", limit-5) + secret + "yyy", strings.Repeat("x", limit-5) + "***yy (cut)"},
		"secret at the end of what is looked at": {
			strings.Repeat(secret, 10) + strings.Repeat("x", limit-10*len(secret)+5) + secret + strings.Repeat("y", 100),
			strings.Repeat("***", 10) + strings.Repeat("x", limit-10*len(secret)) + " (cut)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			logs, revision := open(t, t.TempDir()), newRevision()
			w := writer(t, logs, revision, secret)
			for rest := c.line + "\nnext\n"; rest != ""; {
				n := min(len(rest), 1000)
				_, err := w.Write([]byte(rest[:n]))
				must(t, err)
				rest = rest[n:]
			}
			must(t, w.Close())
			got := messages(t, logs, revision, 10)
			if len(got) != 2 || got[1] != "next" {
				t.Fatalf("got %d lines, want the long one and the next", len(got))
			}
			if got[0] != c.want {
				t.Errorf("got %d bytes ending in %q, want %d ending in %q", len(got[0]), end(got[0]), len(c.want), end(c.want))
			}
		})
	}
}

func end(s string) string { return s[max(0, len(s)-30):] }

func TestLastIsBounded(t *testing.T) {
	t.Parallel()
	logs := open(t, t.TempDir())
	w := writer(t, logs, newRevision())
	for i := range 100 {
		_, err := fmt.Fprintln(w, i)
		must(t, err)
	}
	if got := w.Last(); !strings.HasPrefix(got, "60\n61\n") || !strings.HasSuffix(got, "\n99") {
		t.Errorf("Last is %q, want the last 40 lines", got)
	}
	_, err := fmt.Fprintln(w, strings.Repeat("é", 10000))
	must(t, err)
	if got := w.Last(); len(got) != 4<<10 || strings.Trim(got, "é") != "" {
		t.Errorf("Last has %d bytes, want 4096 of whole characters", len(got))
	}
	must(t, w.Close())
}

func TestReadGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	logs, revision := open(t, t.TempDir()), newRevision()
	read := func(offset int64, limit int, want ...string) int64 {
		t.Helper()
		lines, next, err := logs.Read(revision, revisionlog.Deploy, offset, limit)
		must(t, err)
		var got []string
		for _, line := range lines {
			got = append(got, line.Message)
			if line.Timestamp != noon || line.Level != revisionlog.Info {
				t.Errorf("got line %+v", line)
			}
		}
		wantMessages(t, got, want...)
		return next
	}
	if next := read(0, 10); next != 0 {
		t.Errorf("a log that does not exist goes on at %d, want 0", next)
	}
	write(t, logs, revision, "a\nb\nc\n")
	next := read(0, 2, "a", "b")
	next = read(next, 10, "c")
	next = read(next, 10)
	write(t, logs, revision, "d\n")
	next = read(next, 10, "d")
	if lines, _, err := logs.Read(revision, revisionlog.Deploy, 0, 10); err != nil || len(lines) != 4 {
		t.Errorf("got %d lines, %v; want all 4", len(lines), err)
	} else {
		read(lines[2].Offset, 1, "c")
	}
	if got := read(next+1000, 10); got != next+1000 {
		t.Errorf("past the end: goes on at %d, want %d", got, next+1000)
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	dir, revision := t.TempDir(), newRevision()
	logs := open(t, dir)
	w := writer(t, logs, revision)
	filler := strings.Repeat("x", 30<<10)
	const lines = 1500 // about 44 MB
	for i := range lines {
		_, err := fmt.Fprintf(w, "%d %s\n", i, filler)
		must(t, err)
	}
	must(t, w.Close())

	files, err := filepath.Glob(filepath.Join(dir, revision, "*"))
	must(t, err)
	size := int64(0)
	for _, file := range files {
		info, err := os.Stat(file)
		must(t, err)
		size += info.Size()
	}
	if len(files) != 3 || size > 30<<20 || size < 20<<20 {
		t.Errorf("%d files with %d bytes; want 3 with 20 to 30 MB", len(files), size)
	}

	first := -1
	for offset, want := int64(0), -1; ; {
		page, next, err := logs.Read(revision, revisionlog.Deploy, offset, 100)
		must(t, err)
		if len(page) == 0 {
			if want != lines {
				t.Errorf("the last line read is %d, want %d", want-1, lines-1)
			}
			break
		}
		for _, line := range page {
			got := 0
			_, err := fmt.Sscan(line.Message, &got)
			must(t, err)
			if want < 0 {
				first, want = got, got
			}
			if got != want {
				t.Fatalf("line %d follows line %d", got, want-1)
			}
			want++
		}
		offset = next
	}
	if got := messages(t, logs, revision, lines); len(got) != lines-first || !strings.HasPrefix(got[0], fmt.Sprint(first, " ")) {
		t.Errorf("Tail has %d lines, want the same %d", len(got), lines-first)
	}
}

func TestTornLineIsPassedOver(t *testing.T) {
	t.Parallel()
	dir, revision := t.TempDir(), newRevision()
	write(t, open(t, dir), revision, "whole\n")
	files, err := filepath.Glob(filepath.Join(dir, revision, "*"))
	must(t, err)
	file, err := os.OpenFile(files[0], os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = file.WriteString(`{"timestamp":"2026-`)
	must(t, err)
	must(t, file.Close())
	logs := open(t, dir)
	wantMessages(t, messages(t, logs, revision, 10), "whole")
	write(t, logs, revision, "after the crash\n")
	wantMessages(t, messages(t, logs, revision, 10), "whole", "after the crash")
	page, next, err := logs.Read(revision, revisionlog.Deploy, 0, 2)
	must(t, err)
	if len(page) != 1 || page[0].Message != "whole" {
		t.Errorf("first page is %+v, want the line before the torn one", page)
	}
	page, _, err = logs.Read(revision, revisionlog.Deploy, next, 2)
	must(t, err)
	if len(page) != 1 || page[0].Message != "after the crash" {
		t.Errorf("second page is %+v, want the line after the torn one", page)
	}
}

func TestWritersOfOneLogKeepLinesWhole(t *testing.T) {
	t.Parallel()
	logs, revision := open(t, t.TempDir()), newRevision()
	var writers sync.WaitGroup
	for range 8 {
		w := writer(t, logs, revision)
		writers.Go(func() {
			for range 200 {
				for _, piece := range []string{"to", "geth", "er\n"} {
					if _, err := w.Write([]byte(piece)); err != nil {
						t.Error(err)
					}
				}
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	got := messages(t, logs, revision, 10000)
	for _, message := range got {
		if message != "together" {
			t.Fatalf("got line %q", message)
		}
	}
	if len(got) != 1600 {
		t.Errorf("got %d lines, want 1600", len(got))
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	dir, gone, stays := t.TempDir(), newRevision(), newRevision()
	logs := open(t, dir)
	write(t, logs, stays, "stays\n")
	w := writer(t, logs, gone)
	_, err := w.Write([]byte("before\n"))
	must(t, err)
	must(t, logs.Remove(gone))
	_, err = w.Write([]byte("after\n"))
	must(t, err)
	must(t, w.Close())
	wantMessages(t, messages(t, logs, gone, 10))
	wantMessages(t, messages(t, logs, stays, 10), "stays")
	must(t, logs.Remove(gone))
	write(t, logs, gone, "again\n")
	wantMessages(t, messages(t, logs, gone, 10), "again")
}

func TestNamesThatAreRefused(t *testing.T) {
	t.Parallel()
	logs := open(t, t.TempDir())
	for _, c := range []struct {
		revision string
		kind     revisionlog.Kind
	}{{"../up", revisionlog.Build}, {"", revisionlog.Build}, {newRevision(), "../up"}, {newRevision(), ""}} {
		if _, err := logs.Writer(c.revision, c.kind); err == nil {
			t.Errorf("Writer(%q, %q): got no error", c.revision, c.kind)
		}
		if _, err := logs.Tail(c.revision, c.kind, 1); err == nil {
			t.Errorf("Tail(%q, %q): got no error", c.revision, c.kind)
		}
		if _, _, err := logs.Read(c.revision, c.kind, 0, 1); err == nil {
			t.Errorf("Read(%q, %q): got no error", c.revision, c.kind)
		}
	}
	if err := logs.Remove("../up"); err == nil {
		t.Error("Remove: got no error")
	}
}

func TestSystemClockIsReadForEachLine(t *testing.T) {
	t.Parallel()
	logs, err := revisionlog.Open(t.TempDir(), clock.System)
	must(t, err)
	revision, before := newRevision(), clock.System()
	write(t, logs, revision, "now\n")
	lines, err := logs.Tail(revision, revisionlog.Deploy, 1)
	must(t, err)
	if got := lines[0].Timestamp; got.Before(before) || got.After(clock.System()) {
		t.Errorf("timestamp %s is not now", got)
	}
}
