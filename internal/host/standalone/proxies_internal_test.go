package standalone

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAttackAForgedAddressOnOneMachine checks that handlers see the address that a proxy names, and
// that no other client can name one.
func TestAttackAForgedAddressOnOneMachine(t *testing.T) {
	t.Parallel()
	s, err := Open(Config{
		Listen: "127.0.0.1:0", Data: t.TempDir(), Log: slog.New(slog.DiscardHandler),
		Proxies: inbound.Proxies{Header: "X-Real-IP", Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.7/32")}},
	})
	check.Must(t, err)
	defer func() { check.Must(t, s.Close(t.Context())) }()
	seen := ""
	s.mux.Handle("/address", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.RemoteAddr }))
	for sender, want := range map[string]string{"192.0.2.7:1": "203.0.113.5:0", "192.0.2.8:1": "192.0.2.8:1"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/address", nil)
		r.RemoteAddr = sender
		r.Header.Set("X-Real-IP", "203.0.113.5")
		s.mux.ServeHTTP(httptest.NewRecorder(), r)
		if seen != want {
			t.Errorf("a request from %s has the address %s, want %s", sender, seen, want)
		}
	}
}
