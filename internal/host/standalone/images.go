package standalone

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/registry"
	"github.com/slipway-run/slipway/internal/seam/registry/files"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// openRegistry opens the registry that clients push images to, at the server's own address: names
// of images have a host and a port, and no path before their own.
func (s *Server) openRegistry() error {
	address, err := url.Parse(s.baseURL)
	if err != nil {
		return fmt.Errorf("read the server's address: %w", err)
	}
	s.pushed, err = files.Open(files.Config{Dir: s.path("images"), Host: imageHost(address), Hasher: s.key, Now: clock.System, Log: s.config.Log, Space: s.space, Room: s.files().Room})
	if err != nil {
		return err
	}
	s.closers.AddCloser(s.pushed)
	return nil
}

// files is the quota of the files that workspaces keep on this machine.
func (s *Server) files() *quota.Files {
	measure := func(workspace string) int64 {
		return s.uploads.Size(workspace) + s.pushed.Size(workspace) + s.builder.Size(workspace)
	}
	return &quota.Files{Limits: s.config.Quotas, Measure: measure}
}

// imageHost is the host of the names of images at an address. Container engines take a name of
// one word for a host only if it has a port.
func imageHost(address *url.URL) string {
	if strings.ContainsAny(address.Host, ".:") || address.Host == "localhost" {
		return address.Host
	}
	port := ":80"
	if address.Scheme == "https" {
		port = ":443"
	}
	return address.Host + port
}

// checkRegistry refuses registries with addresses that are not public, except the server's own
// registry.
func (s *Server) checkRegistry(ctx context.Context, host string) error {
	address, err := url.Parse(s.baseURL)
	if err != nil {
		return fmt.Errorf("read the server's address: %w", err)
	}
	if host == imageHost(address) {
		return nil
	}
	if err := s.config.PrivateAddresses.CheckHost(ctx, host); err != nil {
		return fmt.Errorf("the address of the registry %s is not a public one, and this server's --private-addresses do not permit it", host)
	}
	return nil
}

// login returns the credentials with which the container engine pulls the images of a release.
func (s *Server) login(ctx context.Context, ref compute.Ref) (host, username, password string, err error) {
	grant, err := s.pushed.Pull(ctx, registry.Ref{Workspace: ref.Workspace, Deployment: ref.Deployment})
	return grant.Host(), grant.Username, grant.Token, err
}
