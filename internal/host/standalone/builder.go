package standalone

import (
	"context"
	"net/netip"
	"net/url"
	"os"

	builddocker "github.com/slipway-run/slipway/internal/seam/build/docker"
	"github.com/slipway-run/slipway/internal/seam/build/dockerfile"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
	buildlocal "github.com/slipway-run/slipway/internal/seam/build/local"
)

// ConnectCommand is the command of the server's program that joins its input and output to a
// host, by outbound.Connect. Builds start it.
const ConnectCommand = "connect"

// openBuilder makes the builder for repositories, which builds images if the configuration says
// so.
func (s *Server) openBuilder() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	config := buildlocal.Config{
		Dir: s.path("builds"), Logs: s.logs, Log: s.config.Log, Uploads: s.uploads, Private: s.config.Data, Users: s.users, Refuse: s.refuseCode, Space: s.space, Room: s.files().Room, Bases: dockerfile.Bases{Registry: s.config.ImageRegistry},
		Networks: s.config.PrivateAddresses, LocalRepositories: s.permits(s.config.LocalRepositories), OperatorSSH: s.permits(s.config.OperatorSSH),
		Connect: []string{program, ConnectCommand}, Offers: []framework.Offer{framework.OfferEncryption},
	}
	if s.config.BuildImages {
		images, err := builddocker.Open(context.Background(), builddocker.Config{})
		if err != nil {
			return err
		}
		s.closers.AddCloser(images)
		config.Images = images
		config.Offers = append(config.Offers, framework.OfferLines)
	}
	if s.builder, err = buildlocal.New(config); err != nil {
		return err
	}
	s.closers.AddCloser(s.builder)
	return nil
}

// permits returns the operator's choice about access to the rights of the server's user on this
// machine. Without a choice, tenants get this access while all of them must be users of this
// machine: the server listens on a loopback address, and its configuration names no other
// address in front of it.
func (s *Server) permits(choice *bool) bool {
	if choice != nil {
		return *choice
	}
	at, err := netip.ParseAddrPort(s.listener.Addr().String())
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return false
	}
	base, err := url.Parse(s.baseURL)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(base.Hostname())
	return base.Hostname() == "localhost" || err == nil && addr.Unmap().IsLoopback()
}
