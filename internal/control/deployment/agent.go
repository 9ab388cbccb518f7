package deployment

import (
	"context"
	"crypto/subtle"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/secret"
)

// Agents knows the agents of deployments by the tokens that they are invoked with.
type Agents struct {
	Store *Store
	// Hasher returns the key that the tokens are derived from, which some places read when they are
	// asked first.
	Hasher func(context.Context) (secret.Hasher, error)
}

// Admit tells whether a token is that of an agent of the deployment: of the revision that serves,
// of the one before that still finishes its runs, or of the one in flight. It takes as long for a
// token that nearly is one.
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
