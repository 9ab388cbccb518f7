package docker

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
	checks "github.com/slipway-run/slipway/internal/test/check"
)

// TestLinesOfContainersStayWhole records two containers that print parts of lines in turns, each
// also to its error output.
func TestLinesOfContainersStayWhole(t *testing.T) {
	t.Parallel()
	logs, err := files.Open(t.TempDir(), clock.System)
	checks.Must(t, err)
	log := revisionlog.Log{Revision: id.New(clock.System()), Kind: revisionlog.Deploy}
	output, err := logs.Writer(log.Revision, log.Kind)
	checks.Must(t, err)
	r := &running{output: output}
	var printed [2]*io.PipeWriter
	recorded := make(chan error, len(printed))
	for i := range printed {
		var from *io.PipeReader
		from, printed[i] = io.Pipe()
		go func() { recorded <- r.record(from) }()
	}
	prints := func(container int, stream stdcopy.StdType, text string) {
		t.Helper()
		frame := make([]byte, 8, 8+len(text))
		frame[0] = byte(stream)
		binary.BigEndian.PutUint32(frame[4:], uint32(len(text)))
		_, err := printed[container].Write(append(frame, text...))
		checks.Must(t, err)
	}
	prints(0, stdcopy.Stdout, "the agent ")
	prints(1, stdcopy.Stdout, "the sidecar ")
	prints(0, stdcopy.Stderr, "a problem ")
	prints(1, stdcopy.Stderr, "another")
	prints(0, stdcopy.Stdout, "listens\n")
	prints(0, stdcopy.Stderr, "of it\n")
	for _, w := range printed {
		checks.Must(t, w.Close())
		checks.Must(t, <-recorded)
	}
	checks.Must(t, output.Close())
	page, err := logs.Read(t.Context(), log, revisionlog.Query{Limit: 10})
	checks.Must(t, err)
	lines := map[string]bool{}
	for _, line := range page.Lines {
		lines[line.Message] = true
	}
	want := map[string]bool{"the agent listens": true, "a problem of it": true, "the sidecar ": true, "another": true}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// TestAContainerThatTheKernelKilled has containers that were killed at an engine that may have
// missed why.
func TestAContainerThatTheKernelKilled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ state, events, oom string }{
		"the engine knows":      {state: `"ExitCode": 137, "OOMKilled": true`, oom: usedMemory},
		"an event says it":      {state: `"ExitCode": 137`, events: `{"Action": "oom"}`, oom: usedMemory},
		"a client did it":       {state: `"ExitCode": 137`, events: `{"Action": "kill", "Actor": {"Attributes": {"signal": "15"}}} {"Action": "kill", "Actor": {"Attributes": {"signal": "9"}}}`},
		"no event says why":     {state: `"ExitCode": 137`, oom: wasKilled},
		"it ended by something": {state: `"ExitCode": 143`, events: `{"Action": "oom"}`},
		"the engine is lost":    {state: `"ExitCode": 137`, events: `{`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer := `{"Id": "agent", "State": {"StartedAt": "2026-01-02T03:04:05.678Z", ` + c.state + `}}`
				if path.Base(r.URL.Path) == "events" {
					answer = c.events
					if since := r.FormValue("since"); since != "1767323045.678000000" {
						t.Errorf("events since %q", since)
					}
				}
				w.Header().Set("Content-Type", "application/json")
				_, err := io.WriteString(w, answer)
				checks.Must(t, err)
				if answer == "" {
					checks.Must(t, http.NewResponseController(w).Flush())
					<-r.Context().Done()
				}
			}))
			t.Cleanup(server.Close)
			api, err := client.New(client.WithHost("tcp://" + strings.TrimPrefix(server.URL, "http://")))
			checks.Must(t, err)
			r := &running{engine: &engine{cfg: Config{Log: slog.New(slog.DiscardHandler)}, client: api}, follow: context.Background()}
			_, oom, _, err := r.describe("agent")
			checks.Must(t, err)
			if oom != c.oom {
				t.Errorf("got %q, want %q", oom, c.oom)
			}
		})
	}
}
