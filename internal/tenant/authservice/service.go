package authservice

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Config is what a Service works with.
type Config struct {
	Table  table.Table
	Sealer secret.Sealer
	Now    clock.Clock
	// Log gets trouble that no request fails for; the default is slog's. It never gets a code, a
	// token or a secret.
	Log *slog.Logger
	// Private are the networks that providers may have addresses of although these are not public.
	// Beyond them, a user who names a provider cannot make the service call a host behind its
	// firewall.
	Private outbound.Networks
	// Timeout bounds one call to a provider, and all calls of a request that makes several; 0 is 15
	// s.
	Timeout time.Duration
}

// Service reads and writes providers, tokens and all that belongs to them, and speaks to the
// providers.
type Service struct {
	table   table.Table
	sealer  secret.Sealer
	now     clock.Clock
	log     *slog.Logger
	private outbound.Networks
	timeout time.Duration
	client  *http.Client
}

// New returns a service. It starts nothing.
func New(c Config) *Service {
	timeout := cmp.Or(c.Timeout, defaultTimeout)
	return &Service{
		table: c.Table, sealer: c.Sealer, now: c.Now, log: cmp.Or(c.Log, slog.Default()),
		private: c.Private, timeout: timeout, client: newClient(c.Private, timeout),
	}
}
