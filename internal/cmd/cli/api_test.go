package cli

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/slipway-run/slipway/internal/cmd/client"
)

// TestAFullDiskIsNotTriedAgain checks that a command reports the answers at once that do not pass.
func TestAFullDiskIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int64{
		http.StatusInsufficientStorage: 1, http.StatusNotImplemented: 1, http.StatusHTTPVersionNotSupported: 1, http.StatusServiceUnavailable: firstTries,
	} {
		var requests atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			w.WriteHeader(status)
		}))
		t.Cleanup(server.Close)
		asked := &api{Client: client.New(client.Server{URL: server.URL, Key: "key"})}
		err := asked.do(t.Context(), http.MethodGet, "/v2/deployments", nil, nil)
		if answer, ok := errors.AsType[*client.APIError](err); !ok || answer.Status != status || requests.Load() != want {
			t.Errorf("status %d: %d requests, want %d (%v)", status, requests.Load(), want, err)
		}
	}
}
