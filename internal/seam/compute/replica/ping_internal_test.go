package replica

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestAttackAHealthCheckWithLargeHeaders has an agent whose answer to a probe has headers that take
// the server's memory.
func TestAttackAHealthCheckWithLargeHeaders(t *testing.T) {
	t.Parallel()
	for size, good := range map[int]bool{32 << 10: true, 1 << 20: false} {
		agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Large", strings.Repeat("x", size))
		}))
		t.Cleanup(agent.Close)
		target := &Target{probes: newProbeClient((&net.Dialer{}).DialContext)}
		if err := target.ping(t.Context(), agent.URL); (err == nil) != good {
			t.Errorf("headers of %d bytes: got %v", size, err)
		}
	}
}
