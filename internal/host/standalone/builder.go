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

// ConnectCommand is the command of the program that serves which joins its input and output to a
// host, by outbound.Connect. Builds start it.
const ConnectCommand = "connect"

// openBuilder makes what builds repositories, into images if that was asked for.
func (s *Server) openBuilder() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	config := buildlocal.Config{
		Dir: s.path("builds"), Logs: s.logs, Log: s.config.Log, Uploads: s.uploads, Private: s.config.Data, Users: s.users, Refuse: s.refuseCode, Space: s.space, Room: s.files().Room, Bases: dockerfile.Bases{Registry: s.config.ImageRegistry},
		Networks: s.config.PrivateAddresses, LocalRepositories: s.permits(s.config.LocalRepositories), OperatorSSH: s.permits(s.config.OperatorSSH),
		Connect: []string{program, ConnectCommand}, Offers: []framework.Offer{framework.OfferAuth, framework.OfferHTTP, framework.OfferTTL},
	}
	if s.config.BuildImages {
		if s.images, err = builddocker.Open(context.Background(), builddocker.Config{}); err != nil {
			return err
		}
		config.Images = s.images
	}
	s.builder, err = buildlocal.New(config)
	return err
}

// permits is the operator's choice about what the server's user has on this machine. Without one,
// tenants get it while they can only be users of this machine: a server that listens on a loopback
// address, and that is not said to have another one in front of it.
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
