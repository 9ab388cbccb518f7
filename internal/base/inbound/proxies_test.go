package inbound_test

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/slipway-run/slipway/internal/base/inbound"
)

// TestAttackAForgedAddress checks that only a proxy is believed about the address of a client.
func TestAttackAForgedAddress(t *testing.T) {
	t.Parallel()
	proxies := inbound.Proxies{Header: "CF-Connecting-IP", Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	for name, c := range map[string]struct {
		proxies inbound.Proxies
		sender  string
		named   []string
		want    string
	}{
		"a client of the proxy":         {proxies, "192.0.2.7:0", []string{"203.0.113.5"}, "203.0.113.5:0"},
		"a client with IPv6":            {proxies, "192.0.2.7:0", []string{"2001:db8::1"}, "[2001:db8::1]:0"},
		"a proxy with a mapped address": {proxies, "[::ffff:192.0.2.7]:0", []string{"203.0.113.5"}, "203.0.113.5:0"},
		"the proxy itself":              {proxies, "192.0.2.7:0", nil, "192.0.2.7:0"},
		"a direct client that lies":     {proxies, "198.51.100.1:0", []string{"203.0.113.5"}, "198.51.100.1:0"},
		"two addresses":                 {proxies, "192.0.2.7:0", []string{"203.0.113.5, 203.0.113.6"}, "192.0.2.7:0"},
		"two headers":                   {proxies, "192.0.2.7:0", []string{"203.0.113.5", "203.0.113.6"}, "192.0.2.7:0"},
		"no address":                    {proxies, "192.0.2.7:0", []string{"nobody"}, "192.0.2.7:0"},
		"no sender":                     {proxies, "pipe", []string{"203.0.113.5"}, "pipe"},
		"no proxy":                      {inbound.Proxies{}, "192.0.2.7:0", []string{"203.0.113.5"}, "192.0.2.7:0"},
	} {
		r := &http.Request{RemoteAddr: c.sender, Header: http.Header{}}
		for _, value := range c.named {
			r.Header.Add("CF-Connecting-IP", value)
		}
		if got := c.proxies.Client(r); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}
