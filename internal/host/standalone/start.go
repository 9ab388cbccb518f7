package standalone

import (
	"context"

	"github.com/slipway-run/slipway/internal/base/clock"
)

// start restores the state of an earlier process, and writes the credentials, which show that
// the server is ready.
func (s *Server) start(ctx context.Context) error {
	// A release that cannot be restored must not prevent the others; the reconciler tries the
	// serving releases again.
	if err := s.rollout.Restore(ctx); err != nil {
		s.config.Log.ErrorContext(ctx, "restore releases", "error", err)
	}
	if err := s.engine.Resume(ctx); err != nil {
		s.config.Log.ErrorContext(ctx, "resume workflows", "error", err)
	}
	// The holders of leases died with the previous process, so all leases are over. Most runs have
	// no stored workflow, and get one here.
	if err := s.reconciler.Once(ctx, clock.System().AddDate(1, 0, 0)); err != nil {
		s.config.Log.ErrorContext(ctx, "reconcile", "error", err)
	}
	return s.writeCredentials(ctx)
}
