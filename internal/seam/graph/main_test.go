package graph_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const runID = "0192f3a4-1111-7abc-8def-0123456789ab"

// newClient returns a client whose connections end with the test.
func newClient(t testing.TB) *graph.Client {
	transport := graph.NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	return graph.NewClient(transport)
}

// serve starts an agent that answers each invocation with the handler.
func serve(t testing.TB, handler http.HandlerFunc) compute.Endpoint {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return compute.Endpoint{URL: server.URL}
}

// serveStream starts an agent that answers with the text as a stream.
func serveStream(t testing.TB, text string) compute.Endpoint {
	return serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		io.WriteString(w, text)
	})
}

// invoke starts an invocation that must be accepted.
func invoke(t testing.TB, endpoint compute.Endpoint, invocation graph.Invocation) *graph.Stream {
	t.Helper()
	stream, err := newClient(t).Invoke(t.Context(), endpoint, invocation)
	check.Must(t, err)
	t.Cleanup(func() {
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
	})
	return stream
}

// readAll returns the events of a stream and the error that ended it: nil for io.EOF.
func readAll(stream *graph.Stream) ([]graph.Event, error) {
	var events []graph.Event
	for {
		event, err := stream.Next()
		if err == io.EOF {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, event)
	}
}

// kind names the kind of an error, so that a table can name the kind it wants.
func kind(err error) string {
	if err == nil {
		return "none"
	}
	if _, ok := errors.AsType[*graph.UnavailableError](err); ok {
		absent, ok := errors.AsType[*graph.AbsentError](err)
		switch {
		case !ok:
			return "unavailable"
		case absent.MayHaveBegun:
			return "absent, or it may have begun"
		}
		return "absent"
	}
	if _, ok := errors.AsType[*graph.RefusedError](err); ok {
		return "refused"
	}
	if _, ok := errors.AsType[*graph.ProtocolError](err); ok {
		return "protocol"
	}
	return err.Error()
}

func event(name, data string) graph.Event {
	return graph.Event{Name: name, Data: json.RawMessage(data)}
}

// bytewise compares data as a whole. A comparison element by element takes seconds for large
// events.
var bytewise = cmp.Comparer(func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
