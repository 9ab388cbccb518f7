package runner

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

// TestWhatIsReadAheadHasABound in bytes, and nothing is lost by it.
func TestWhatIsReadAheadHasABound(t *testing.T) {
	t.Parallel()
	const size, fit, all = aheadBytes / 8, 8, 20
	text := strings.Repeat("x", size-2)
	agent := graphtest.Start(t, func(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
		for range all {
			emit(graph.EventCustom, text)
		}
		return nil
	})
	stream, err := graph.NewClient(nil).Invoke(t.Context(), agent, graph.Invocation{Operation: graph.OperationRun, Input: json.RawMessage("null")})
	if err != nil {
		t.Fatal(err)
	}
	events := receive(t.Context(), stream)
	for len(events.queue) < fit {
		runtime.Gosched()
	}
	if events.room.TryAcquire(1) {
		t.Error("there is room left for more events")
	}
	read := 0
	for got := range events.queue {
		events.room.Release(got.size)
		switch {
		case got.err == nil && len(got.event.Data) == size:
			read++
		case !errors.Is(got.err, io.EOF):
			t.Fatalf("got %d bytes and error %v", len(got.event.Data), got.err)
		}
	}
	if read != all {
		t.Errorf("got %d events, want %d", read, all)
	}
}
