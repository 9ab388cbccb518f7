package runner

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// answering returns the stream of an agent that sends data a number of times.
func answering(t *testing.T, data any, times int) *graph.Stream {
	t.Helper()
	agent := graphtest.Start(t, func(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
		for range times {
			emit(graph.EventCustom, data)
		}
		return nil
	})
	stream, err := graph.NewClient(nil).Invoke(t.Context(), agent, graph.Invocation{Operation: graph.OperationRun, Input: json.RawMessage("null")})
	check.Must(t, err)
	return stream
}

// TestAttackRunsThatAreReadAheadOfWhatIsStored checks that such runs share one budget, however
// many they are. Nothing is lost, and a small run of another workspace is read while nothing
// of the large runs is stored.
func TestAttackRunsThatAreReadAheadOfWhatIsStored(t *testing.T) {
	t.Parallel()
	const size, all, runs, total = 1 << 20, 5, 6, 16 << 20
	text := strings.Repeat("x", size-2)
	room := budget.New(total)
	var inboxes []*inbox
	for range runs {
		ahead := newAhead(room, "hostile", time.Minute, func() { t.Error("an event is too slow") })
		defer ahead.close()
		inboxes = append(inboxes, new(Runner).receive(t.Context(), answering(t, text, all), ahead))
	}
	small := newAhead(room, "other", time.Minute, func() {})
	defer small.close()
	for got := range new(Runner).receive(t.Context(), answering(t, "small", 3), small).queue {
		if got.err != nil && !errors.Is(got.err, io.EOF) {
			t.Errorf("the small run ended with %v", got.err)
		}
	}
	var done sync.WaitGroup
	for _, events := range inboxes {
		done.Go(func() {
			read := 0
			for got := range events.queue {
				if held := room.Held(); held > total+(mostAhead+2*size)*eventCost {
					// One run may go on beyond the budget.
					t.Errorf("%d bytes are held of %d", held, total)
				}
				events.give(got.size)
				switch {
				case got.err == nil && len(got.event.Data) == size:
					read++
				case !errors.Is(got.err, io.EOF):
					t.Errorf("got %d bytes and error %v", len(got.event.Data), got.err)
				}
			}
			if read != all {
				t.Errorf("got %d events, want %d", read, all)
			}
		})
	}
	done.Wait()
	if held := room.Held(); held != 0 {
		t.Errorf("%d bytes are held in the end", held)
	}
}

// TestAttackEventsOfManyValues checks that the values of a large event are counted beside its
// bytes until the event is given back.
func TestAttackEventsOfManyValues(t *testing.T) {
	t.Parallel()
	const values = 100_000
	room := budget.New(1 << 30)
	ahead := newAhead(room, "hostile", time.Minute, func() {})
	defer ahead.close()
	got := <-new(Runner).receive(t.Context(), answering(t, make([]int, values), 1), ahead).queue
	if got.err != nil {
		t.Fatal(got.err)
	}
	if held := room.Held(); held < values*(valueCost+2*eventCost)-aheadAllowance*eventCost {
		t.Errorf("%d bytes are held for %d values", held, values)
	}
	ahead.give(got.size)
	if held := room.Held(); held != 0 {
		t.Errorf("%d bytes are held in the end", held)
	}
}

// TestAttackALargeEventThatStops checks that such an event holds its part of the budget for a
// bounded time.
func TestAttackALargeEventThatStops(t *testing.T) {
	t.Parallel()
	slow := make(chan struct{})
	room := budget.New(64 << 20)
	ahead := newAhead(room, "hostile", 50*time.Millisecond, func() { close(slow) })
	defer ahead.close()
	check.Must(t, ahead.take(t.Context(), largeStep-1))
	select {
	case <-slow:
		t.Fatal("a small event has to hurry")
	case <-time.After(200 * time.Millisecond):
	}
	check.Must(t, ahead.take(t.Context(), largeStep))
	select {
	case <-slow:
	case <-time.After(time.Minute):
		t.Fatal("a large event may take for ever")
	}
}

// brokenBody panics when it is read.
type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { panic("poison") }
func (brokenBody) Close() error             { return nil }

// brokenTransport answers each request with a brokenBody.
type brokenTransport struct{}

func (brokenTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	header := http.Header{"Content-Type": {"text/event-stream"}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: brokenBody{}, Request: request}, nil
}

// TestAttackAnAnswerWhoseReadingPanics checks that the attempt ends with an error that is not
// the agent's fault.
func TestAttackAnAnswerWhoseReadingPanics(t *testing.T) {
	t.Parallel()
	agent := compute.Endpoint{URL: "http://127.0.0.1:1"}
	stream, err := graph.NewClient(brokenTransport{}).Invoke(t.Context(), agent, graph.Invocation{Operation: graph.OperationRun})
	check.Must(t, err)
	runner := &Runner{}
	runner.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	ahead := newAhead(budget.New(1<<20), "a", time.Minute, func() {})
	defer ahead.close()
	got := <-runner.receive(t.Context(), stream, ahead).queue
	if _, panicked := errors.AsType[*guard.PanicError](got.err); !panicked {
		t.Errorf("got %v, want the panic as an error", got.err)
	}
}
