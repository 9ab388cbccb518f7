package files_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
	"github.com/slipway-run/slipway/internal/test/check"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func open(t *testing.T, dir string) *files.Logs {
	t.Helper()
	logs, err := files.Open(dir, func() time.Time { return noon })
	check.Must(t, err)
	return logs
}

func newRevision() string { return id.New(time.Now()) }

func writer(t *testing.T, logs *files.Logs, revision string, secrets ...string) *files.Writer {
	t.Helper()
	w, err := logs.Writer(revision, revisionlog.Deploy, secrets...)
	check.Must(t, err)
	return w
}

// write writes each piece in a call of its own and closes the writer.
func write(t *testing.T, logs *files.Logs, revision string, pieces ...string) {
	t.Helper()
	w := writer(t, logs, revision)
	for _, piece := range pieces {
		n, err := w.Write([]byte(piece))
		check.Must(t, err)
		if n != len(piece) {
			t.Fatalf("Write took %d of %d bytes", n, len(piece))
		}
	}
	check.Must(t, w.Close())
}

func messages(t *testing.T, logs *files.Logs, revision string, n int) []string {
	t.Helper()
	var got []string
	for _, line := range tail(t, logs, revision, n) {
		got = append(got, line.Message)
	}
	return got
}

// tail returns the last n lines, the oldest of them first.
func tail(t *testing.T, logs *files.Logs, revision string, n int) []revisionlog.Line {
	t.Helper()
	var lines []revisionlog.Line
	query := revisionlog.Query{Backward: true, Limit: n}
	for more := true; more && query.Limit > 0; {
		page, err := logs.Read(t.Context(), revisionlog.Log{Revision: revision, Kind: revisionlog.Deploy}, query)
		check.Must(t, err)
		lines = append(lines, page.Lines...)
		query.After, query.Limit, more = page.Next, n-len(lines), page.More
	}
	slices.Reverse(lines)
	return lines
}

// read reads forward.
func read(t *testing.T, logs *files.Logs, revision, after string, limit int) revisionlog.Page {
	t.Helper()
	page, err := logs.Read(t.Context(), revisionlog.Log{Revision: revision, Kind: revisionlog.Deploy}, revisionlog.Query{After: after, Limit: limit})
	check.Must(t, err)
	return page
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
	check.Must(t, err)
	_, err = w.Write([]byte("compiling\n"))
	check.Must(t, err)
	check.Must(t, w.Note(revisionlog.Error, "no %s for\nyou", "open-sesame"))
	check.Must(t, w.Close())
	names, err := filepath.Glob(filepath.Join(dir, revision, "*"))
	check.Must(t, err)
	if len(names) != 1 {
		t.Fatalf("got files %q, want one", names)
	}
	got, err := os.ReadFile(names[0])
	check.Must(t, err)
	want := `{"timestamp":"2026-11-20T12:00:00.000000Z","level":"INFO","message":"compiling"}
{"timestamp":"2026-11-20T12:00:00.000000Z","level":"ERROR","message":"no *** for\nyou"}
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
	info, err := os.Stat(names[0])
	check.Must(t, err)
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
		check.Must(t, err)
	}
	check.Must(t, w.Close())
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
				check.Must(t, err)
				rest = rest[n:]
			}
			check.Must(t, w.Close())
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
		check.Must(t, err)
	}
	if got := w.Last(); !strings.HasPrefix(got, "60\n61\n") || !strings.HasSuffix(got, "\n99") {
		t.Errorf("Last is %q, want the last 40 lines", got)
	}
	_, err := fmt.Fprintln(w, strings.Repeat("é", 10000))
	check.Must(t, err)
	if got := w.Last(); len(got) != 4<<10 || strings.Trim(got, "é") != "" {
		t.Errorf("Last has %d bytes, want 4096 of whole characters", len(got))
	}
	check.Must(t, w.Close())
}

func TestReadGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	logs, revision := open(t, t.TempDir()), newRevision()
	expect := func(after string, limit int, more bool, want ...string) string {
		t.Helper()
		page := read(t, logs, revision, after, limit)
		var got []string
		for _, line := range page.Lines {
			got = append(got, line.Message)
			if line.Timestamp != noon || line.Level != revisionlog.Info {
				t.Errorf("got line %+v", line)
			}
		}
		wantMessages(t, got, want...)
		if page.More != more {
			t.Errorf("behind %q: more is %t", after, page.More)
		}
		return page.Next
	}
	if next := expect("", 10, false); next != "0" {
		t.Errorf("a log that does not exist goes on at %s, want 0", next)
	}
	write(t, logs, revision, "a\nb\nc\n")
	next := expect("", 2, true, "a", "b")
	next = expect(next, 1, false, "c")
	next = expect(next, 10, false)
	write(t, logs, revision, "d\n")
	expect(next, 10, false, "d")
	all := read(t, logs, revision, "", 10).Lines
	if len(all) != 4 {
		t.Fatalf("got %d lines, want all 4", len(all))
	}
	expect(all[1].ID, 1, true, "c")
	if got := expect("1000000", 10, false); got != "1000000" {
		t.Errorf("past the end: goes on at %s", got)
	}
	for _, after := range []string{"x", "-1", "1.5"} {
		if _, err := logs.Read(t.Context(), revisionlog.Log{Revision: revision, Kind: revisionlog.Deploy}, revisionlog.Query{After: after, Limit: 1}); !errors.Is(err, revisionlog.ErrPosition) {
			t.Errorf("behind %q: got %v", after, err)
		}
	}
}

// TestReadingBackward reads lines that are longer than a block.
func TestReadingBackward(t *testing.T) {
	t.Parallel()
	logs, revision := open(t, t.TempDir()), newRevision()
	var all []string
	w := writer(t, logs, revision)
	for i := range 60 {
		all = append(all, fmt.Sprint(i, strings.Repeat("\x01", i*100))) // six bytes of JSON each
		_, err := fmt.Fprintln(w, all[i])
		check.Must(t, err)
	}
	check.Must(t, w.Close())
	for _, size := range []int{1, 7, 60} {
		var got []string
		query := revisionlog.Query{Backward: true, Limit: size}
		for more := true; more; {
			page, err := logs.Read(t.Context(), revisionlog.Log{Revision: revision, Kind: revisionlog.Deploy}, query)
			check.Must(t, err)
			for _, line := range page.Lines {
				got = append(got, line.Message)
			}
			query.After, more = page.Next, page.More
		}
		slices.Reverse(got)
		if !slices.Equal(got, all) {
			t.Errorf("pages of %d: got %d lines, not the %d that were written", size, len(got), len(all))
		}
	}
}

func TestTimesBoundWhatIsRead(t *testing.T) {
	t.Parallel()
	now := noon
	logs, err := files.Open(t.TempDir(), func() time.Time { return now })
	check.Must(t, err)
	revision := newRevision()
	w := writer(t, logs, revision)
	for i := range 10 {
		now = noon.Add(time.Duration(i) * time.Second)
		_, err := fmt.Fprintln(w, i)
		check.Must(t, err)
	}
	check.Must(t, w.Close())
	for _, backward := range []bool{false, true} {
		page, err := logs.Read(t.Context(), revisionlog.Log{Revision: revision, Kind: revisionlog.Deploy}, revisionlog.Query{
			From: noon.Add(3 * time.Second), To: noon.Add(5 * time.Second), Backward: backward, Limit: 100,
		})
		check.Must(t, err)
		var got []string
		for _, line := range page.Lines {
			got = append(got, line.Message)
		}
		if backward {
			slices.Reverse(got)
		}
		if wantMessages(t, got, "3", "4", "5"); page.More {
			t.Error("there is nothing more")
		}
	}
}

func TestWatchersAreWoken(t *testing.T) {
	t.Parallel()
	logs, revision := open(t, t.TempDir()), newRevision()
	log := revisionlog.Log{Revision: revision, Kind: revisionlog.Deploy}
	one, two, other := logs.Watch(log), logs.Watch(log), logs.Watch(revisionlog.Log{Revision: revision, Kind: revisionlog.Build})
	two.Stop()
	write(t, logs, revision, "a\nb\n")
	select {
	case <-one.C():
	default:
		t.Error("who watches was not woken")
	}
	for name, w := range map[string]revisionlog.Watcher{"gone": two, "of another log": other} {
		select {
		case <-w.C():
			t.Errorf("who is %s was woken", name)
		default:
		}
	}
	one.Stop()
	other.Stop()
}

func TestTornLineIsPassedOver(t *testing.T) {
	t.Parallel()
	dir, revision := t.TempDir(), newRevision()
	write(t, open(t, dir), revision, "whole\n")
	names, err := filepath.Glob(filepath.Join(dir, revision, "*"))
	check.Must(t, err)
	file, err := os.OpenFile(names[0], os.O_APPEND|os.O_WRONLY, 0)
	check.Must(t, err)
	_, err = file.WriteString(`{"timestamp":"2026-`)
	check.Must(t, err)
	check.Must(t, file.Close())
	logs := open(t, dir)
	wantMessages(t, messages(t, logs, revision, 10), "whole")
	write(t, logs, revision, "after the crash\n")
	wantMessages(t, messages(t, logs, revision, 10), "whole", "after the crash")
	page := read(t, logs, revision, "", 2)
	if len(page.Lines) != 2 || page.Lines[0].Message != "whole" || page.Lines[1].Message != "after the crash" {
		t.Errorf("got %+v, want the lines around the torn one", page.Lines)
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
	check.Must(t, err)
	check.Must(t, logs.Remove(gone))
	_, err = w.Write([]byte("after\n"))
	check.Must(t, err)
	check.Must(t, w.Close())
	wantMessages(t, messages(t, logs, gone, 10))
	wantMessages(t, messages(t, logs, stays, 10), "stays")
	check.Must(t, logs.Remove(gone))
	write(t, logs, gone, "again\n")
	wantMessages(t, messages(t, logs, gone, 10), "again")
}

// TestAppend adds lines beside a writer.
func TestAppend(t *testing.T) {
	t.Parallel()
	logs, revision := open(t, t.TempDir()), newRevision()
	name := revisionlog.Log{Revision: revision, Kind: revisionlog.Deploy}
	changes := logs.Watch(name)
	defer changes.Stop()
	check.Must(t, logs.Append(t.Context(), name, []string{"WARN one", "", "two"}))
	<-changes.C()
	w, err := logs.Writer(revision, revisionlog.Deploy)
	check.Must(t, err)
	_, err = w.Write([]byte("three\n"))
	check.Must(t, err)
	check.Must(t, logs.Append(t.Context(), name, []string{"four"}))
	check.Must(t, w.Close())
	page, err := logs.Read(t.Context(), name, revisionlog.Query{Limit: 10})
	check.Must(t, err)
	got, last := []string{}, time.Time{}
	for _, line := range page.Lines {
		got = append(got, string(line.Level)+" "+line.Message)
		if line.Timestamp.Before(last) {
			t.Errorf("%v is before the line before it", line)
		}
		last = line.Timestamp
	}
	if want := []string{"WARNING WARN one", "INFO ", "INFO two", "INFO three", "INFO four"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if err := logs.Append(t.Context(), revisionlog.Log{Revision: "../up", Kind: revisionlog.Deploy}, []string{"x"}); err == nil {
		t.Error("a path: got no error")
	}
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
		if _, err := logs.Read(t.Context(), revisionlog.Log{Revision: c.revision, Kind: c.kind}, revisionlog.Query{Limit: 1}); err == nil {
			t.Errorf("Read(%q, %q): got no error", c.revision, c.kind)
		}
	}
	if err := logs.Remove("../up"); err == nil {
		t.Error("Remove: got no error")
	}
}

func TestSystemClockIsReadForEachLine(t *testing.T) {
	t.Parallel()
	logs, err := files.Open(t.TempDir(), clock.System)
	check.Must(t, err)
	revision, before := newRevision(), clock.System()
	write(t, logs, revision, "now\n")
	if got := tail(t, logs, revision, 1)[0].Timestamp; got.Before(before) || got.After(clock.System()) {
		t.Errorf("timestamp %s is not now", got)
	}
}
