package outbound

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"syscall"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// ErrAddress is the error of a dialer that refuses an address.
var ErrAddress = errors.New("the address is not public")

// internet6 are the IPv6 addresses that the internet uses. The others are for special purposes:
// some carry an IPv4 address, in which a private address could hide.
var internet6 = netip.MustParsePrefix("2000::/3")

// notPublic are the networks that are no part of the internet, beyond the networks that
// package netip names: IANA's special purpose registries, and the prefixes of internet6 that carry
// an IPv4 address.
var notPublic = prefixes(
	"100.64.0.0/10", // carriers' NAT, and metadata services of some clouds
	"2001::/23",     // Teredo and others
	"2002::/16",     // 6to4
	"0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"2001:db8::/32", "3fff::/20",
)

// public reports whether an address belongs to the internet.
func public(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return (addr.Is4() || internet6.Contains(addr)) && addr.IsGlobalUnicast() && !addr.IsPrivate() && !notPublic.contains(addr)
}

// guard is a dialer's Control. It sees the address that a name was resolved to, directly
// before the connection is made, so no further answer of a DNS server can come between the
// check and the connection.
func (n Networks) guard(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !n.permit(at.Addr()) {
		return ErrAddress
	}
	return nil
}

// MaxURL is the largest length of a URL, in bytes.
const MaxURL = 2048

// CheckURL returns a fault.Invalid unless a URL, the value of a field, may be called: https,
// or http on the machine itself. A literal address that may not be called is refused at once.
// The dialer checks the address that a name is resolved to.
func CheckURL(field, raw string, private Networks) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || len(raw) > MaxURL:
		return fault.New(fault.Invalid, "%s must be an absolute URL.", field)
	case u.User != nil || u.Fragment != "":
		return fault.New(fault.Invalid, "%s must have neither credentials nor a fragment.", field)
	}
	loopback, permitted := private.kind(u.Hostname())
	switch {
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback):
		return fault.New(fault.Invalid, "%s must be an https URL; http is for loopback addresses only.", field)
	case !permitted:
		return fault.New(fault.Invalid, "%s must not name a private address.", field)
	}
	return nil
}

// kind says, as far as a host's text shows it, whether the host is this machine and whether it
// may be called.
func (n Networks) kind(host string) (loopback, permitted bool) {
	if host == "localhost" {
		return true, n.permit(netip.IPv6Loopback()) || n.permit(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false, true
	}
	return addr.Unmap().IsLoopback(), n.permit(addr)
}

// Dialer returns a dialer that connects to public addresses and to the addresses of the
// networks.
func (n Networks) Dialer() *net.Dialer {
	return &net.Dialer{Timeout: dialTimeout, Control: n.guard}
}
