package deployment

import (
	"context"
	"crypto/subtle"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/secret"
)

// Agents identifies the agents of deployments by the tokens with which they are invoked.
type Agents struct {
	Store *Store
	// Hasher returns the key that the tokens are derived from, which may be read at the first call.
	Hasher func(context.Context) (secret.Hasher, error)
}

// Admit reports whether a token belongs to an agent of the deployment: to the revision that
// serves, to the previous revision that still finishes its runs, or to the revision in flight.
// A token that is almost right takes as long to check as any other token.
func (a Agents) Admit(ctx context.Context, ref Ref, token string) (bool, error) {
	d, err := a.Store.Head(ctx, ref)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil || d.Status == AwaitingDelete {
		return false, err
	}
	hasher, err := a.Hasher(ctx)
	if err != nil {
		return false, err
	}
	admitted := 0
	for _, revision := range []string{d.Active, d.Previous, d.Slot} {
		if revision != "" {
			admitted |= subtle.ConstantTimeCompare([]byte(secret.InvokeToken(hasher, revision)), []byte(token))
		}
	}
	return admitted == 1, nil
}
