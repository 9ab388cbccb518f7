package docker

import (
	"encoding/binary"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/pkg/stdcopy"

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
