package output_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/cmd/output"
)

// told returns some events, at seconds from the beginning.
func told() []output.Event {
	events := []output.Event{
		{Kind: output.KindServer, Elapsed: 0, URL: "http://server", Text: "started"},
		{Kind: output.KindStatus, Elapsed: 1, Status: "BUILDING"},
		{Kind: output.KindWaiting, Elapsed: 2, Status: "BUILDING"},
		{Kind: output.KindWaiting, Elapsed: 12, Status: "BUILDING"},
		{Kind: output.KindStatus, Elapsed: 13, Status: "DEPLOYED"},
		{Kind: output.KindToken, Elapsed: 14, Run: 1, Text: "to"},
		{Kind: output.KindToken, Elapsed: 15, Run: 1, Text: "ken"},
		{Kind: output.KindRunEnd, Elapsed: 16, Run: 1, Status: "interrupted", Text: "1 ms after"},
		{Kind: output.KindLog, Elapsed: 17, Text: "server.log", Lines: []string{"a", "b"}},
		{Kind: output.KindState, Elapsed: 18, Messages: []output.Message{{Type: "human", Content: "hello"}}},
		{Kind: output.KindResult, Elapsed: 19, Status: "succeeded"},
	}
	for i := range events {
		events[i].Time = time.Unix(0, 0).Add(time.Duration(events[i].Elapsed * float64(time.Second)))
	}
	return events
}

func TestText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		live, colour bool
		want         string
	}{
		"appended": {false, false, `   0.0s  server      http://server, started
   1.0s  revision    BUILDING
  12.0s  revision    BUILDING for 11.0s
  13.0s  revision    DEPLOYED
  14.0s  run 1       ai   token
  16.0s  run 1       interrupted, 1 ms after
  17.0s  server log  server.log
    a
    b
  19.0s  result      succeeded
`},
		"redrawn": {true, false, "   0.0s  server      http://server, started\n" +
			"   1.0s  revision    BUILDING" +
			"\r   2.0s  revision    BUILDING for 1.0s\x1b[K" +
			"\r  12.0s  revision    BUILDING for 11.0s\x1b[K\n" +
			"  13.0s  revision    DEPLOYED\n" +
			"  14.0s  run 1       ai   token\n" +
			"  16.0s  run 1       interrupted, 1 ms after\n" +
			"  17.0s  server log  server.log\n    a\n    b\n" +
			"  19.0s  result      succeeded\n"},
		"coloured": {true, true, "\x1b[2m   0.0s\x1b[0m  server      http://server, started\n" +
			"\x1b[2m   1.0s\x1b[0m  revision    BUILDING" +
			"\r\x1b[2m   2.0s\x1b[0m  revision    BUILDING for 1.0s\x1b[K" +
			"\r\x1b[2m  12.0s\x1b[0m  revision    BUILDING for 11.0s\x1b[K\n" +
			"\x1b[2m  13.0s\x1b[0m  revision    \x1b[32mDEPLOYED\x1b[0m\n" +
			"\x1b[2m  14.0s\x1b[0m  run 1       ai   token\n" +
			"\x1b[2m  16.0s\x1b[0m  run 1       \x1b[33minterrupted\x1b[0m, 1 ms after\n" +
			"\x1b[2m  17.0s\x1b[0m  server log  server.log\n    a\n    b\n" +
			"\x1b[2m  19.0s\x1b[0m  result      \x1b[32msucceeded\x1b[0m\n"},
	} {
		var data, shown bytes.Buffer
		text := output.NewText(&data, &shown, c.live, c.colour)
		for _, event := range told() {
			text.Show(event)
		}
		if err := text.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, shown.String()); diff != "" {
			t.Errorf("%s: progress (-want +got):\n%s", name, diff)
		}
		if got, want := data.String(), "human  hello\n"; got != want {
			t.Errorf("%s: data %q, want %q", name, got, want)
		}
	}
}

// broken is a writer that fails.
type broken struct{}

var errBroken = errors.New("broken pipe")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteErrorsAreReported(t *testing.T) {
	t.Parallel()
	for name, printer := range map[string]output.Printer{
		"data": output.NewText(broken{}, io.Discard, false, false), "progress": output.NewText(io.Discard, broken{}, false, false), "JSON": output.NewJSON(broken{}),
	} {
		for _, event := range told() {
			printer.Show(event)
		}
		if err := printer.Close(); !errors.Is(err, errBroken) {
			t.Errorf("%s: got %v, want the error of the writer", name, err)
		}
	}
}
