package remote_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/host/agenthost"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/remote"
	"github.com/slipway-run/slipway/internal/test/check"
)

const token = "the-host's-own-token"

// host serves logs in files.
func host(t *testing.T) (logs *files.Logs, url string) {
	t.Helper()
	dir := t.TempDir()
	logs, err := files.Open(filepath.Join(dir, "logs"), clock.System)
	check.Must(t, err)
	served, err := agenthost.New(agenthost.Config{Dir: filepath.Join(dir, "releases"), Token: token, Logs: logs, Log: slog.New(slog.DiscardHandler)})
	check.Must(t, err)
	server := httptest.NewServer(served)
	t.Cleanup(server.Close)
	t.Cleanup(served.Close)
	return logs, server.URL
}

func TestReadAndWatch(t *testing.T) {
	t.Parallel()
	logs, url := host(t)
	reader, log := remote.New(url, token, nil), revisionlog.Log{Revision: id.New(time.Now()), Kind: revisionlog.Deploy}
	w, err := logs.Writer(log.Revision, log.Kind)
	check.Must(t, err)
	changes := reader.Watch(log)
	<-changes.C() // the host watches
	query := revisionlog.Query{Limit: 2}
	for i := range 20 {
		_, err := fmt.Fprintln(w, "line", i)
		check.Must(t, err)
		<-changes.C()
		page, err := reader.Read(t.Context(), log, query)
		check.Must(t, err)
		if len(page.Lines) != 1 || page.Lines[0].Message != fmt.Sprint("line ", i) || page.Lines[0].ID != page.Next || page.Lines[0].Timestamp.IsZero() || page.More {
			t.Fatalf("got %+v, want line %d", page, i)
		}
		query.After = page.Next
	}
	check.Must(t, reader.Append(t.Context(), log, []string{"one more", "and another"}))
	<-changes.C()
	if page, err := reader.Read(t.Context(), log, query); err != nil || len(page.Lines) != 2 || page.Lines[1].Message != "and another" || !page.Open {
		t.Errorf("what was added: got %+v (%v)", page, err)
	}
	check.Must(t, w.Close())
	for open := true; open; {
		<-changes.C() // also tells the end of the last writer
		page, err := reader.Read(t.Context(), log, query)
		check.Must(t, err)
		open = page.Open
	}
	changes.Stop()
	if _, err := reader.Read(t.Context(), log, revisionlog.Query{After: "x", Limit: 1}); !errors.Is(err, revisionlog.ErrPosition) {
		t.Errorf("a position that is none: got %v", err)
	}
}

// TestWatchersOfOneLog: each is woken, also when another one has stopped.
func TestWatchersOfOneLog(t *testing.T) {
	t.Parallel()
	_, url := host(t)
	reader, log := remote.New(url, token, nil), revisionlog.Log{Revision: id.New(time.Now()), Kind: revisionlog.Deploy}
	first := reader.Watch(log)
	<-first.C() // the host watches
	second := reader.Watch(log)
	defer second.Stop()
	check.Must(t, reader.Append(t.Context(), log, []string{"for both"}))
	<-first.C()
	<-second.C()
	first.Stop()
	check.Must(t, reader.Append(t.Context(), log, []string{"for one"}))
	<-second.C()
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	_, url := host(t)
	log := revisionlog.Log{Revision: id.New(time.Now()), Kind: revisionlog.Build}
	for name, c := range map[string]struct {
		reader *remote.Logs
		log    revisionlog.Log
		want   string
	}{
		"another token":  {remote.New(url, "another", nil), log, "401"},
		"no revision":    {remote.New(url, token, nil), revisionlog.Log{Revision: "..", Kind: revisionlog.Build}, "404"},
		"no such kind":   {remote.New(url, token, nil), revisionlog.Log{Revision: log.Revision, Kind: "run"}, "404"},
		"nobody answers": {remote.New("http://127.0.0.1:1", token, nil), log, "connection refused"},
	} {
		if _, err := c.reader.Read(t.Context(), c.log, revisionlog.Query{Limit: 1}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if err := c.reader.Append(t.Context(), c.log, []string{"x"}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		c.reader.Watch(c.log).Stop()
	}
}
