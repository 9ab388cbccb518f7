package standalone_test

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAttackConnectionsForNothing has a stranger who opens connections and sends nothing, parts
// of requests, or whole requests without a key. The server holds few of these connections, and
// goes on to answer all other clients.
func TestAttackConnectionsForNothing(t *testing.T) {
	t.Parallel()
	const anonymous, attackers = 8, 60
	credentials, stop := serveWith(t, standalone.Config{
		Data: t.TempDir(), Log: slog.New(slog.DiscardHandler), Connections: inbound.Limits{Anonymous: anonymous, Known: 8},
	})
	defer stop()
	kept := clientOf(credentials)
	// Its connection stays open, and is known.
	kept.call(t, http.StatusOK, "GET", "/v2/deployments", nil)
	closed := make(chan struct{}, attackers)
	host := strings.TrimPrefix(credentials.BaseURL, "http://")
	requests := []string{"", "POST /v2/deployments HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n", "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n", "GET /ok HT"}
	for i := range attackers {
		connection, err := net.Dial("tcp", host)
		check.Must(t, err)
		defer connection.Close()
		fmt.Fprint(connection, requests[i%len(requests)])
		go func() {
			for buffer := make([]byte, 1<<10); ; {
				if _, err := connection.Read(buffer); err != nil {
					closed <- struct{}{}
					return
				}
			}
		}()
	}
	late := time.After(5 * time.Second) // less time than any request may take to arrive
	for range attackers - anonymous {
		select {
		case <-closed:
		case <-late:
			t.Fatal("the server holds more anonymous connections than it should")
		}
	}
	fresh := client{credentials.BaseURL, kept.headers}
	fresh.call(t, http.StatusOK, "GET", "/ok", nil)
	fresh.call(t, http.StatusOK, "GET", "/v2/deployments", nil)
}
