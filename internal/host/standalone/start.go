package standalone

import (
	"context"

	"github.com/slipway-run/slipway/internal/base/clock"
)

// start brings back what an earlier process left, and writes the credentials, which tell that the
// server is ready.
func (s *Server) start(ctx context.Context) error {
	// What cannot be brought back must not keep the rest down; the reconciler tries those again
	// that serve.
	if err := s.rollout.Restore(ctx); err != nil {
		s.config.Log.ErrorContext(ctx, "restore releases", "error", err)
	}
	if err := s.engine.Resume(ctx); err != nil {
		s.config.Log.ErrorContext(ctx, "resume workflows", "error", err)
	}
	// Whoever held a lease died with the process before, so all of them are over.
	if err := s.reconciler.Once(ctx, clock.System().AddDate(1, 0, 0)); err != nil {
		s.config.Log.ErrorContext(ctx, "reconcile", "error", err)
	}
	return s.writeCredentials(ctx)
}
