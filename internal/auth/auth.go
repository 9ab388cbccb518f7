// Package auth authenticates HTTP requests: it turns the headers X-Api-Key and X-Tenant-Id into the workspace that the request acts for.
package auth

import (
	"context"
	"net/http"
	"strings"

	"github.com/slipway-run/slipway/internal/apikey"
	"github.com/slipway-run/slipway/internal/fault"
)

// Names of the headers that carry credentials.
const (
	HeaderKey    = "X-Api-Key"
	HeaderTenant = "X-Tenant-Id"
)

// Authenticator tells who sent a request.
type Authenticator struct {
	keys *apikey.Store
}

// New returns an Authenticator.
func New(keys *apikey.Store) *Authenticator { return &Authenticator{keys: keys} }

// Key returns whose key the request carries. Missing or bad credentials are a fault.Unauthorized.
func (a *Authenticator) Key(r *http.Request) (apikey.Principal, error) {
	key := r.Header.Get(HeaderKey)
	if key == "" {
		return apikey.Principal{}, fault.New(fault.Unauthorized, "The header %s is missing.", HeaderKey)
	}
	return a.keys.Authenticate(r.Context(), key)
}

// Tenant is like Key, and checks the workspace that the request names. A key belongs to one workspace, so the header may be left out; another
// workspace than the key's is a fault.Forbidden.
func (a *Authenticator) Tenant(r *http.Request) (apikey.Principal, error) {
	p, err := a.Key(r)
	if err != nil {
		return apikey.Principal{}, err
	}
	if tenant := r.Header.Get(HeaderTenant); tenant != "" && !strings.EqualFold(tenant, p.Workspace) {
		return apikey.Principal{}, fault.New(fault.Forbidden, "The API key does not belong to the workspace that %s names.", HeaderTenant)
	}
	return p, nil
}

type principalKey struct{}

// With returns a context that carries who sent the request.
func With(ctx context.Context, p apikey.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// Workspace returns the workspace that the request acts for. A handler behind an Authenticator always has one.
func Workspace(ctx context.Context) string {
	p, ok := ctx.Value(principalKey{}).(apikey.Principal)
	if !ok {
		panic("auth: the handler is not behind an authenticator")
	}
	return p.Workspace
}
