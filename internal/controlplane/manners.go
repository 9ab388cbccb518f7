package controlplane

import (
	"context"
	"crypto/sha256"
	"net/http"

	"github.com/slipway-run/slipway/internal/auth"
	"github.com/slipway-run/slipway/internal/idempotency"
	"github.com/slipway-run/slipway/internal/web"
)

// answers keeps the answers of package idempotency, as package web wants them kept.
type answers struct{ *idempotency.Store }

// Claim implements web.Answers. What an answer shows depends on the role of who asks, so that is a part of the request.
func (a answers) Claim(ctx context.Context, key string, fingerprint [sha256.Size]byte) (*web.Answer, web.Attempt, error) {
	principal := auth.Of(ctx)
	found, claimed, err := a.Store.Claim(ctx, idempotency.Request{
		Workspace: principal.Workspace, Key: key, Fingerprint: sha256.Sum256(append(fingerprint[:], principal.Role...)),
	})
	switch {
	case err != nil:
		return nil, nil, err
	case claimed != nil:
		return nil, attempt{claimed}, nil
	}
	return (*web.Answer)(found), nil, nil
}

// attempt implements web.Attempt.
type attempt struct{ *idempotency.Attempt }

func (a attempt) Keep(ctx context.Context, answer web.Answer) error {
	return a.Attempt.Keep(ctx, idempotency.Answer(answer))
}

// guard is what stands before everything: it authenticates a request, counts it, and asks whether the caller may.
func (s server) guard(mux *web.Mux) web.Middleware {
	authenticate, authorize := s.authenticate(mux), s.authorize(mux)
	if s.Limiter == nil {
		return func(next http.Handler) http.Handler { return authenticate(authorize(next)) }
	}
	limit := mux.Limit(s.Limiter, func(r *http.Request) string {
		principal := auth.Of(r.Context())
		return principal.Workspace + "\x00" + principal.Key + "\x00" + principal.Subject
	})
	return func(next http.Handler) http.Handler { return authenticate(limit(authorize(next))) }
}
