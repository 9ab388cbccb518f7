package inbound

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
)

// Proxies are the servers in front of this one that are believed about their clients' addresses.
type Proxies struct {
	// Header is the header in which they name the address of the client, and nothing else.
	Header string
	// Networks are their own addresses. Header counts only in requests that come from them,
	// because every other client could write any address there.
	Networks []netip.Prefix
}

// Client returns the address from which a request came first, as net/http writes addresses: the
// client of a proxy, or the sender of the request itself.
func (p Proxies) Client(r *http.Request) string {
	named := r.Header.Values(p.Header)
	sender, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || len(named) != 1 || !p.near(sender.Addr().Unmap()) {
		return r.RemoteAddr
	}
	client, err := netip.ParseAddr(named[0])
	if err != nil {
		return r.RemoteAddr
	}
	return net.JoinHostPort(client.String(), "0")
}

// near reports whether an address is one of the proxies.
func (p Proxies) near(sender netip.Addr) bool {
	return slices.ContainsFunc(p.Networks, func(n netip.Prefix) bool { return n.Contains(sender) })
}
