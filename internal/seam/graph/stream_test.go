package graph_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestStreamsAreTakenApart(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("x", 100_000) + `"`
	for name, c := range map[string]struct {
		stream   string
		want     []graph.Event
		wantKind string
	}{
		"LF":                {"event: values\ndata: {}\n\nevent: custom\ndata: 1\n\n", []graph.Event{event("values", "{}"), event("custom", "1")}, "none"},
		"CRLF":              {"event: values\r\ndata: {}\r\n\r\nevent: custom\r\ndata: 1\r\n\r\n", []graph.Event{event("values", "{}"), event("custom", "1")}, "none"},
		"no space":          {"event:values\ndata:{}\n\n", []graph.Event{event("values", "{}")}, "none"},
		"data first":        {"data: {}\nevent: values\n\n", []graph.Event{event("values", "{}")}, "none"},
		"several lines":     {"event: values\ndata: {\ndata:\ndata: }\n\n", []graph.Event{event("values", "{\n\n}")}, "none"},
		"colons":            {"event: a:b\ndata: \"a:b\"\n\n", []graph.Event{event("a:b", `"a:b"`)}, "none"},
		"namespace":         {"event: updates|x|y\ndata: {}\n\n", []graph.Event{event("updates|x|y", "{}")}, "none"},
		"comments":          {": hello\n\nevent: values\n: there\ndata: {}\n\n: bye\n", []graph.Event{event("values", "{}")}, "none"},
		"other fields":      {"id: 7\nretry: 9\nevent: values\ndata: {}\nnonsense\n\n", []graph.Event{event("values", "{}")}, "none"},
		"no name":           {"data: {}\n\n", []graph.Event{event("message", "{}")}, "none"},
		"no data":           {"event: values\n\ndata: {}\n\nevent: custom\ndata:\n\n", []graph.Event{event("message", "{}")}, "none"},
		"blank lines":       {"\n\n\nevent: values\ndata: {}\n\n\n\n", []graph.Event{event("values", "{}")}, "none"},
		"long":              {"event: values\ndata: " + long + "\n\n", []graph.Event{event("values", long)}, "none"},
		"long comment":      {":" + long + "\nevent: values\ndata: {}\n\n", []graph.Event{event("values", "{}")}, "none"},
		"data in a comment": {":1234567" + strings.Repeat("data: 1 ", 10_000) + "\nevent: values\ndata: {}\n\n", []graph.Event{event("values", "{}")}, "none"},
		"long in two lines": {"data: [" + long + ",\ndata: " + long + "]\n\n", []graph.Event{event("message", "["+long+",\n"+long+"]")}, "none"},
		"empty":             {"", nil, "none"},
		"not JSON":          {"event: values\ndata: {}\n\nevent: values\ndata: {\"a\n\n", []graph.Event{event("values", "{}")}, "protocol"},
		"bare CR":           {"event: values\rdata: {}\r\r", nil, "unavailable"},
		"ends in a line":    {"event: values\ndata: {}\n\nevent: values\ndata: {\"a\":", []graph.Event{event("values", "{}")}, "unavailable"},
		"ends in an event":  {"event: values\ndata: {}\n", nil, "unavailable"},
		"ends after a name": {"event: values\n", nil, "unavailable"},
		"ends in long data": {"event: values\ndata: " + long, nil, "unavailable"},
		"long name":         {"event: " + long + "\ndata: {}\n\n", nil, "protocol"},
	} {
		got, err := readAll(invoke(t, serveStream(t, c.stream), graph.Invocation{Graph: "agent"}))
		if diff := cmp.Diff(c.want, got, bytewise); diff != "" || kind(err) != c.wantKind {
			t.Errorf("%s: got %v, want %s (-want +got):\n%s", name, err, c.wantKind, diff)
		}
	}
}

func TestAConnectionThatBreaksIsUnavailableAndKeepsItsEvents(t *testing.T) {
	t.Parallel()
	whole := "event: values\ndata: {}\n\n"
	for name, sent := range map[string]string{
		"between events": whole, "within a line": whole + "event: val", "within data": whole + "data: {\"a\"", "within an event": whole + "data: {}\n",
	} {
		endpoint := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, sent)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			panic(http.ErrAbortHandler)
		})
		stream := invoke(t, endpoint, graph.Invocation{Graph: "agent"})
		got, err := readAll(stream)
		if diff := cmp.Diff([]graph.Event{event("values", "{}")}, got); diff != "" || kind(err) != "unavailable" {
			t.Errorf("%s: got %v, want unavailable (-want +got):\n%s", name, err, diff)
		}
		if _, again := stream.Next(); !errors.Is(again, err) {
			t.Errorf("%s: got %v after %v", name, again, err)
		}
	}
}

func TestEventsArriveWhenTheyAreSent(t *testing.T) {
	t.Parallel()
	read := make(chan struct{})
	endpoint := graphtest.Start(t, func(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
		for i := range 3 {
			emit("custom", i)
			await(t, read, "the client reads an event before the next one is sent")
		}
		return nil
	})
	stream := invoke(t, endpoint, graph.Invocation{Graph: "agent"})
	for i := range 3 {
		got, err := stream.Next()
		check.Must(t, err)
		if diff := cmp.Diff(event("custom", fmt.Sprint(i)), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		read <- struct{}{}
	}
	if _, err := stream.Next(); err != io.EOF {
		t.Errorf("got %v, want io.EOF", err)
	}
}

func TestStoppingReachesTheAgent(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(cancel func(), stream *graph.Stream) error{
		"by the context": func(cancel func(), _ *graph.Stream) error { cancel(); return nil },
		"by Close":       func(_ func(), stream *graph.Stream) error { return stream.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stopped := make(chan struct{})
			endpoint := graphtest.Start(t, func(ctx context.Context, _ graph.Invocation, emit func(string, any)) error {
				emit("custom", 1)
				<-ctx.Done()
				close(stopped)
				return ctx.Err()
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stream, err := newClient(t).Invoke(ctx, endpoint, graph.Invocation{Graph: "agent"})
			check.Must(t, err)
			defer stream.Close()
			if _, err := stream.Next(); err != nil {
				t.Fatal(err)
			}
			check.Must(t, stop(cancel, stream))
			await(t, stopped, "the agent stops")
			_, err = stream.Next()
			if err == nil || err == io.EOF || kind(err) == "unavailable" || ctx.Err() != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("got %v after the stop", err)
			}
		})
	}
}

func TestADeadlineEndsASlowStream(t *testing.T) {
	t.Parallel()
	endpoint := graphtest.Start(t, func(ctx context.Context, _ graph.Invocation, emit func(string, any)) error {
		emit("custom", 1)
		<-ctx.Done()
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	stream, err := newClient(t).Invoke(ctx, endpoint, graph.Invocation{Graph: "agent"})
	if err == nil {
		defer stream.Close()
		_, err = readAll(stream)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline", err)
	}
}

//nolint:paralleltest // it measures memory
func TestLargeEvents(t *testing.T) {
	for _, c := range []struct {
		size     int
		wantKind string
	}{{graph.MaxEventBytes, "none"}, {graph.MaxEventBytes + 1, "protocol"}, {16 * graph.MaxEventBytes, "protocol"}} {
		endpoint := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "event: values\ndata: \"")
			piece := strings.Repeat("x", 64<<10)
			for left := c.size - 2; left > 0; left -= len(piece) {
				if _, err := io.WriteString(w, piece[:min(left, len(piece))]); err != nil {
					return // the client has had enough
				}
			}
			io.WriteString(w, "\"\n\n")
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		events, err := readAll(invoke(t, endpoint, graph.Invocation{Graph: "agent"}))
		runtime.ReadMemStats(&after)
		if got := kind(err); got != c.wantKind {
			t.Errorf("%d bytes: got %s, want %s", c.size, got, c.wantKind)
		}
		if c.wantKind == "none" && (len(events) != 1 || len(events[0].Data) != c.size) {
			t.Errorf("%d bytes: got %d events", c.size, len(events))
		}
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(8*graph.MaxEventBytes); got > limit {
			t.Errorf("%d bytes: allocated %d bytes, want at most %d", c.size, got, limit)
		}
	}
}
