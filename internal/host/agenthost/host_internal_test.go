package agenthost

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/wire"
	"github.com/slipway-run/slipway/internal/test/check"
)

// at is a target whose agent answers at a URL.
type at struct {
	compute.MachineTarget
	endpoint compute.Endpoint
}

func (a at) Acquire(context.Context, compute.Ref) (compute.Endpoint, func(), error) {
	return a.endpoint, func() {}, nil
}

func (a at) Serves(context.Context, compute.Ref) (bool, error) { return true, nil }

// held is a connection whose writer goes on only when it is let go: this imitates a machine
// that is so busy that the agent answers first.
type held struct {
	net.Conn
	release <-chan struct{}
}

func (h held) Write(p []byte) (int, error) {
	n, err := h.Conn.Write(p)
	if bytes.Contains(p[:n], []byte("the whole request")) {
		<-h.release
	}
	return n, err
}

// TestAnAnswerBeginsBeforeTheRequestIsDone lets the agent answer before the proxy has noticed
// that it had sent everything.
func TestAnAnswerBeginsBeforeTheRequestIsDone(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadFull(r.Body, make([]byte, len("the whole request")))
		_, _ = io.WriteString(w, "a part, ")
		_ = http.NewResponseController(w).Flush()
		<-begun
		_, _ = io.WriteString(w, "the rest")
	}))
	t.Cleanup(agent.Close)
	host, err := New(Config{
		Dir: t.TempDir(), Token: "token", Target: at{endpoint: compute.Endpoint{URL: agent.URL, Token: "invoke"}},
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	check.Must(t, err)
	release := make(chan struct{})
	host.agents = &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return held{conn, release}, err
	}}
	t.Cleanup(host.Close)
	server := httptest.NewServer(host)
	t.Cleanup(server.Close)
	let := sync.OnceFunc(func() { close(release) })
	t.Cleanup(let)

	url := server.URL + wire.Path(wire.Agent, "w", "d", "r") + invocations
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("the whole request"))
	check.Must(t, err)
	request.Header.Set("Authorization", "Bearer invoke")
	response, err := server.Client().Do(request)
	check.Must(t, err)
	defer response.Body.Close()
	part := make([]byte, len("a part, "))
	if _, err := io.ReadFull(response.Body, part); err != nil {
		t.Fatal(err)
	}
	let()
	close(begun)
	if rest, err := io.ReadAll(response.Body); err != nil || string(rest) != "the rest" {
		t.Errorf("the rest of the answer is %q, %v", rest, err)
	}
}
