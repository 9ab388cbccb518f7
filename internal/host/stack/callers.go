package stack

import (
	"context"
	"net/http"
	"time"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// noteLimit is how long an answer waits for the note that a key was used. There is at most one
// note a minute.
const noteLimit = 500 * time.Millisecond

// KeyStore is the store of API keys. It needs the stack's key; the first request that uses the
// store waits for this key.
func (s *Stack) KeyStore(ctx context.Context) (*apikey.Store, error) {
	key, err := s.Key(ctx)
	if err != nil {
		return nil, err
	}
	return s.apiKeys.get(func() *apikey.Store { return apikey.NewStore(s.Table(), key, clock.System) }), nil
}

// APIKeys finds the caller of a request by its credentials. Only the authorizer uses it.
func (s *Stack) APIKeys() auth.Authenticator {
	return callers{s}
}

// callers is the auth.Authenticator of a stack.
type callers struct{ stack *Stack }

// Key implements auth.Authenticator.
func (c callers) Key(r *http.Request) (workspace.Principal, error) {
	store, err := c.stack.KeyStore(r.Context())
	if err != nil {
		return workspace.Principal{}, err
	}
	principal, err := auth.NewWithTokens(store, c.stack.Tokens).Key(r)
	// A function is frozen when it has answered, together with its unfinished work.
	ctx, cancel := context.WithTimeout(r.Context(), noteLimit)
	defer cancel()
	store.Wait(ctx)
	return principal, err
}
