package graphtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// run returns "name data" of each event, and the error after the last event.
func run(t *testing.T, endpoint compute.Endpoint, attempt int, script ...graphtest.Step) ([]string, error) {
	t.Helper()
	config, err := json.Marshal(map[string]any{"configurable": map[string]any{"script": script}})
	check.Must(t, err)
	transport := graph.NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	invocation := graph.Invocation{Graph: "agent", RunID: "r1", Attempt: attempt, Config: config}
	stream, err := graph.NewClient(transport).Invoke(t.Context(), endpoint, invocation)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	var events []string
	for {
		event, err := stream.Next()
		if err == io.EOF {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, event.Name+" "+string(event.Data))
	}
}

func TestScript(t *testing.T) {
	t.Parallel()
	endpoint := graphtest.Start(t, nil)
	script := []graphtest.Step{
		{Event: "custom", Data: 1, Times: 2},
		{Attempt: 1, Event: "custom", Data: 2, Break: true},
		{Attempt: 2, DelayMS: 1, Error: "no luck"},
		{Event: "custom", Data: 3},
	}
	for attempt, want := range map[int][]string{
		1: {"custom 1", "custom 1", "custom 2"},
		2: {"custom 1", "custom 1", `error {"error":"GraphError","message":"no luck"}`},
		3: {"custom 1", "custom 1", "custom 3"},
	} {
		got, err := run(t, endpoint, attempt, script...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("attempt %d (-want +got):\n%s", attempt, diff)
		}
		if _, broken := errors.AsType[*graph.UnavailableError](err); broken != (attempt == 1) {
			t.Errorf("attempt %d: got %v", attempt, err)
		}
	}
}

func TestWithoutAScriptItSaysOK(t *testing.T) {
	t.Parallel()
	got, err := run(t, graphtest.Start(t, nil), 2)
	want := []string{`updates {"agent":{"messages":[{"content":"ok","id":"r1-2","type":"ai"}]}}`}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("got %v (-want +got):\n%s", err, diff)
	}
}

func TestHoldEndsWithTheConnection(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	endpoint := graphtest.Start(t, func(ctx context.Context, invocation graph.Invocation, emit func(string, any)) error {
		err := graphtest.Script(ctx, invocation, emit)
		ended <- err
		return err
	})
	transport := graph.NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	config := json.RawMessage(`{"configurable":{"script":[{"hold":true}]}}`)
	stream, err := graph.NewClient(transport).Invoke(t.Context(), endpoint, graph.Invocation{Graph: "agent", Config: config})
	check.Must(t, err)
	check.Must(t, stream.Close())
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the connection", err)
	}
}

func TestTheTokenIsRequired(t *testing.T) {
	t.Parallel()
	endpoint := graphtest.Start(t, nil)
	endpoint.Token = "other"
	_, err := run(t, endpoint, 1)
	if refused, ok := errors.AsType[*graph.RefusedError](err); !ok || refused.Status != 401 {
		t.Errorf("got %v, want 401", err)
	}
}
