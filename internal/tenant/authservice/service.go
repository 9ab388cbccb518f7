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
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// Config holds the dependencies and settings of a Service.
type Config struct {
	Table  table.Table
	Sealer secret.Sealer
	Now    clock.Clock
	// Log gets errors that do not make a request fail; the default is slog's. It never gets a
	// code, a token or a secret.
	Log *slog.Logger
	// Private are the networks that are not public but may contain addresses of providers.
	// Outside these networks, a user who names a provider cannot make the service call a host
	// behind its firewall.
	Private outbound.Networks
	// Quotas bound the tokens of each workspace.
	Quotas quota.Limits
	// Timeout bounds one call to a provider, and all calls of a request that makes several
	// calls; 0 is 15 s.
	Timeout time.Duration
}

// Service reads and writes providers, tokens and everything that belongs to them, and calls
// the providers.
type Service struct {
	Config

	// client makes all calls to providers.
	client *http.Client
}

// New returns a service. It starts nothing.
func New(c Config) *Service {
	c.Log, c.Timeout = cmp.Or(c.Log, slog.Default()), cmp.Or(c.Timeout, defaultTimeout)
	return &Service{c, outbound.NewClient(outbound.Limits{Private: c.Private, Timeout: c.Timeout, MaxAnswer: maxAnswer})}
}
