package docker

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	checks "github.com/slipway-run/slipway/internal/test/check"
)

// TestTheListOfNetworksHoldsUpNobody: while the engine takes its time for the list, other replicas
// can end.
func TestTheListOfNetworksHoldsUpNobody(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/networks") {
			close(asked)
			<-answer
		}
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write([]byte(`[{"Id": "there"}]`)); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	api, err := client.New(client.WithHost("tcp://" + strings.TrimPrefix(server.URL, "http://")))
	checks.Must(t, err)
	e := &engine{cfg: Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, client: api}
	e.closing, e.close = context.WithCancel(t.Context())
	defer e.close()
	ready := make(chan error, 1)
	go func() { ready <- e.ready(t.Context()) }()
	<-asked
	if e.mu.TryLock() {
		e.mu.Unlock()
	} else {
		t.Error("the lock is held meanwhile")
	}
	close(answer)
	if err := <-ready; err != nil {
		t.Error(err)
	}
}
