package standalone

import (
	"net"
	"testing"

	"github.com/slipway-run/slipway/internal/base/outbound"
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
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{listener: listener, baseURL: c.base}
		if c.base == "" {
			s.baseURL = TLS{}.url(listener.Addr())
		}
		if got := s.permits(c.choice); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	}
}
