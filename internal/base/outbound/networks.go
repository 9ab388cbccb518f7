package outbound

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Networks are the networks whose addresses may be called although they are not public. The zero
// value permits public addresses only.
type Networks []netip.Prefix

// Everywhere permits all addresses.
var Everywhere = prefixes("0.0.0.0/0", "::/0")

// ofTheMachine are the addresses of the machine itself, of its link and of the services that
// give it credentials.
var ofTheMachine = prefixes("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "::/96", "fe80::/10", "fd00:ec2::/32")

// elsewhere are the addresses on other machines that Everywhere permits: private networks.
var elsewhere = prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7").without(ofTheMachine)

// prefixes reads networks that this package names.
func prefixes(texts ...string) Networks {
	networks := make(Networks, len(texts))
	for i, text := range texts {
		networks[i] = netip.MustParsePrefix(text)
	}
	return networks
}

// Elsewhere returns the networks without the addresses of the machine itself, of its link and
// of services that give it credentials. For Everywhere, it returns the private networks.
func (n Networks) Elsewhere() Networks {
	if n.All() {
		return elsewhere
	}
	return n.without(ofTheMachine)
}

// WithoutLoopback returns the networks without the addresses of the machine's own programs. A
// connection to an address that stands for all addresses reaches them, too.
func (n Networks) WithoutLoopback() Networks {
	return n.without(prefixes("0.0.0.0/8", "127.0.0.0/8", "::/127"))
}

// without returns the networks without the addresses of others.
func (n Networks) without(others Networks) Networks {
	for _, other := range others {
		var left Networks
		for _, network := range n {
			left = append(left, less(network, other)...)
		}
		n = left
	}
	return n
}

// less splits a network until no part of it holds an address of the other network, and returns
// the parts.
func less(network, other netip.Prefix) Networks {
	switch {
	case !network.Overlaps(other):
		return Networks{network}
	case other.Bits() <= network.Bits():
		return nil
	}
	low, high := halves(network)
	return append(less(low, other), less(high, other)...)
}

// halves returns the two networks of which a network consists.
func halves(network netip.Prefix) (low, high netip.Prefix) {
	bits := network.Bits() + 1
	bytes := network.Masked().Addr().AsSlice()
	bytes[(bits-1)/8] |= 0x80 >> ((bits - 1) % 8)
	top, _ := netip.AddrFromSlice(bytes) // the slice has as many bytes as an address of its family
	return netip.PrefixFrom(network.Masked().Addr(), bits), netip.PrefixFrom(top, bits)
}

// ParseNetworks reads a setting: "true" permits all addresses, "false" and "" permit public
// addresses only, and a list like "10.1.0.0/16,192.168.7.3" permits these networks and
// addresses as well.
func ParseNetworks(setting string) (Networks, error) {
	switch setting {
	case "", "false":
		return nil, nil
	case "true":
		return Everywhere, nil
	}
	var networks Networks
	for text := range strings.SplitSeq(setting, ",") {
		text = strings.TrimSpace(text)
		if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
			networks = append(networks, netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()))
			continue
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no network: write true, false, or a list like 10.1.0.0/16,192.168.7.3", text)
		}
		networks = append(networks, prefix.Masked())
	}
	return networks, nil
}

// String is the setting from which ParseNetworks reads these networks.
func (n Networks) String() string {
	if len(n) == 0 {
		return "false"
	}
	if n.All() {
		return "true"
	}
	texts := make([]string, len(n))
	for i, network := range n {
		texts[i] = network.String()
	}
	return strings.Join(texts, ",")
}

// Set and Type make the networks the value of a flag.
func (n *Networks) Set(setting string) (err error) {
	*n, err = ParseNetworks(setting)
	return err
}

// Type is the name of the value in the help of a command.
func (n *Networks) Type() string { return "networks" }

// All reports whether every address is permitted, or every address in elsewhere.
func (n Networks) All() bool { return slices.Equal(n, Everywhere) || slices.Equal(n, elsewhere) }

// permit reports whether an address may be called.
func (n Networks) permit(addr netip.Addr) bool {
	return public(addr) || n.contains(addr.Unmap().WithZone(""))
}

func (n Networks) contains(addr netip.Addr) bool {
	return slices.ContainsFunc(n, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// CheckHost returns ErrAddress if a host, with or without a port, is or resolves to an address
// that may not be called. It is for connections that another program makes. The address of a
// name may change until then, so a dialer of the networks is better if one can be used. A name
// that cannot be resolved here passes, because the other program may know it.
func (n Networks) CheckHost(ctx context.Context, host string) error {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if addr, err := netip.ParseAddr(host); err == nil {
		return n.refusal(addr)
	}
	// 127.1, 2130706433 and 0x7f.1 are addresses for many programs, and names for others.
	last := strings.ToLower(host[strings.LastIndexByte(host, '.')+1:])
	if last == "" || strings.HasPrefix(last, "0x") || strings.Trim(last, "0123456789") == "" {
		return ErrAddress
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil //nolint:nilerr // as said above
	}
	for _, addr := range addrs {
		if err := n.refusal(addr); err != nil {
			return err
		}
	}
	return nil
}

func (n Networks) refusal(addr netip.Addr) error {
	if !n.permit(addr) {
		return ErrAddress
	}
	return nil
}
