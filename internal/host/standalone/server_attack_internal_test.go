package standalone

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAttackRegistriesHavePublicAddresses uses names of images that make an engine call hosts
// of its own network.
func TestAttackRegistriesHavePublicAddresses(t *testing.T) {
	t.Parallel()
	s := &Server{baseURL: "http://127.0.0.1:8080"}
	for host, good := range map[string]bool{
		"127.0.0.1:8080": true, "127.0.0.1:5000": false, "localhost:5000": false, "169.254.169.254": false, "10.0.0.1:5000": false, "[::1]:5000": false, "8.8.8.8": true,
	} {
		if err := s.checkRegistry(t.Context(), host); (err == nil) != good {
			t.Errorf("%s: %v", host, err)
		}
	}
	s.config.PrivateAddresses = outbound.Everywhere
	if err := s.checkRegistry(t.Context(), "127.0.0.1:5000"); err != nil {
		t.Error(err)
	}
}

// TestAttackWhoMayReachTheServerUsesNotItsMachine checks when tenants may use directories and
// the identity of the server's user without the operator's permission.
func TestAttackWhoMayReachTheServerUsesNotItsMachine(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, c := range []struct {
		listen, base string
		choice       *bool
		want         bool
	}{
		{"127.0.0.1:0", "", nil, true},
		{"[::1]:0", "", nil, true},
		{"127.0.0.1:0", "http://localhost:8080", nil, true},
		{"127.0.0.1:0", "https://slipway.example.com", nil, false},
		{"0.0.0.0:0", "", nil, false},
		{"[::]:0", "", nil, false},
		{"[::]:0", "http://localhost:8080", nil, false},
		{"0.0.0.0:0", "", &yes, true},
		{"127.0.0.1:0", "", &no, false},
	} {
		listener, err := net.Listen("tcp", c.listen)
		check.Must(t, err)
		s := &Server{listener: listener, baseURL: c.base}
		if c.base == "" {
			s.baseURL = TLS{}.URL(listener.Addr())
		}
		if got := s.permits(c.choice); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	}
}

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
