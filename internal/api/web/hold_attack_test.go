package web_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAttackReadersThatDoNotRead has a stream that has read less than what is free for a request.
// Its client may take it slowly, so it counts. A visitor's connection takes memory, too.
func TestAttackReadersThatDoNotRead(t *testing.T) {
	t.Parallel()
	const read = 100 << 10
	mux, _ := newMux()
	streams, reads := budget.NewLasting(1<<20), budget.New(1<<20)
	mux.Streams = streams
	mux.Reads = reads
	took, end := make(chan bool, 1), make(chan struct{})
	reading := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := web.NewStream(w).Follow(r.Context(), time.Minute, func(ctx context.Context, send func(...web.Event) error) error {
			took <- budget.HoldOf(ctx).Try(read)
			select {
			case <-end:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	mux.Handle("GET /stream", mux.Holding(reading))
	mux.Handle("GET /visit", mux.Visited(func(*http.Request) string { return "a place" })(reading))
	server := httptest.NewServer(mux)
	defer server.Close()
	for i, path := range []string{"/stream", "/visit"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		check.Must(t, err)
		answer, err := server.Client().Do(request)
		check.Must(t, err)
		defer answer.Body.Close()
		if !<-took {
			t.Errorf("%s: there is no room", path)
		}
		if held, each := streams.Held(), int64(64<<10); held != int64(i+1)*each {
			t.Errorf("%s: the connections hold %d bytes", path, held)
		}
		if held := reads.Held(); held != int64(i+1)*read {
			t.Errorf("%s: %d bytes of the %d that were read are counted", path, held, (i+1)*read)
		}
	}
	close(end)
	server.Close() // Close waits for all answers
	if streams.Held() != 0 || reads.Held() != 0 {
		t.Errorf("in the end %d and %d bytes are held", streams.Held(), reads.Held())
	}
}
