// Package auth authenticates HTTP requests: it turns their credentials into the workspace that
// the request acts for, and into the permissions that the request has there.
//
// A credential is an API key, as X-Api-Key or as Authorization: Bearer, or a token of an
// OpenID Connect issuer, as Authorization: Bearer. When a request has both headers, X-Api-Key
// counts and Authorization is ignored, so that a header that a proxy adds to the request
// changes nothing. A token does not replace a bad key. X-Tenant-Id names the workspace. A
// request with a key may omit it, because the key belongs to one workspace; a request with a
// token may not.
//
// A third credential is a session of the command line, as Authorization: Bearer. Browsers have a
// fourth credential: the cookie of a session (session.go). It counts only where both headers are
// missing (a header with any text, good or bad, is not missing), and only with the session's
// proof in a header that no page of another origin can send.
package auth

import (
	"context"
	"net/http"
	"strings"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/session"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// Names of the headers that carry credentials.
const (
	HeaderKey    = "X-Api-Key"
	HeaderBearer = "Authorization"
	HeaderTenant = "X-Tenant-Id"
)

// Authenticator finds the principal whose credentials a request carries.
type Authenticator interface {
	// Key returns the principal that sent the request. Missing or bad credentials are a
	// fault.Unauthorized; a token that the workspace does not admit is a fault.Forbidden.
	Key(r *http.Request) (workspace.Principal, error)
}

// Tokens finds the principal that a bearer token admits to a workspace.
type Tokens interface {
	Authenticate(ctx context.Context, token, workspace string) (workspace.Principal, error)
}

// Keys is the Authenticator that looks up the key of a request.
type Keys struct {
	store    *apikey.Store
	tokens   Tokens
	sessions Sessions
	cookies  SessionCookies
}

// New returns an Authenticator that knows the keys of a store.
func New(store *apikey.Store) *Keys { return &Keys{store: store} }

// NewWithTokens returns an Authenticator that knows the keys of a store, and asks tokens about
// other bearer tokens.
func NewWithTokens(store *apikey.Store, tokens Tokens) *Keys {
	return &Keys{store: store, tokens: tokens}
}

// AcceptSessions lets people act with sessions: browsers with a cookie, the command line with a
// bearer token.
func (k *Keys) AcceptSessions(sessions Sessions, cookies SessionCookies) {
	k.sessions, k.cookies = sessions, cookies
}

// Key implements Authenticator. The connection of a request with good credentials counts as a
// connection of the workspace from then on.
func (k *Keys) Key(r *http.Request) (workspace.Principal, error) {
	principal, err := k.principal(r)
	if err == nil {
		inbound.Known(r.Context(), principal.Workspace)
	}
	return principal, err
}

func (k *Keys) principal(r *http.Request) (workspace.Principal, error) {
	if key := r.Header.Get(HeaderKey); key != "" {
		return k.store.Authenticate(r.Context(), key)
	}
	if r.Header.Get(HeaderBearer) == "" && k.sessions != nil {
		if token, proof, sent := k.cookies.Session(r); sent {
			if err := checkOrigin(r); err != nil {
				return workspace.Principal{}, err
			}
			return k.sessions.Authenticate(r.Context(), token, proof)
		}
	}
	token, ok := Bearer(r.Header)
	switch {
	case !ok:
		return workspace.Principal{}, fault.New(fault.Unauthorized, "The header %s is missing.", HeaderKey)
	case strings.HasPrefix(token, apikey.Prefix):
		return k.store.Authenticate(r.Context(), token)
	case strings.HasPrefix(token, session.Prefix) && k.sessions != nil:
		return k.sessions.Bearer(r.Context(), token)
	case k.tokens == nil:
		return workspace.Principal{}, fault.New(fault.Unauthorized, "The bearer token is not an API key, and this server takes no others.")
	default:
		return k.tokens.Authenticate(r.Context(), token, r.Header.Get(HeaderTenant))
	}
}

// Bearer returns the bearer token of a request.
func Bearer(header http.Header) (token string, ok bool) {
	scheme, token, _ := strings.Cut(header.Get(HeaderBearer), " ")
	token = strings.TrimSpace(token)
	return token, token != "" && strings.EqualFold(scheme, "Bearer")
}

// IsOwn reports whether a text is a credential of the platform by its mark: an API key, or the
// token of a session of the command line. Agents must not see these.
func IsOwn(credential string) bool {
	return strings.HasPrefix(credential, apikey.Prefix) || strings.HasPrefix(credential, session.Prefix)
}

// Tenant returns the principal that sent the request, and checks the workspace that the
// request names. A key belongs to one workspace, so the request may omit the header; a
// workspace other than the key's is a fault.Forbidden.
func Tenant(a Authenticator, r *http.Request) (workspace.Principal, error) {
	p, err := a.Key(r)
	if err != nil {
		return workspace.Principal{}, err
	}
	if tenant := r.Header.Get(HeaderTenant); tenant != "" && !strings.EqualFold(tenant, p.Workspace) {
		return workspace.Principal{}, fault.New(fault.Forbidden, "The API key does not belong to the workspace that %s names.", HeaderTenant)
	}
	return p, nil
}

type principalKey struct{}

// With returns a context that carries the principal that sent the request.
func With(ctx context.Context, p workspace.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// Of returns the principal that sent the request. The context of a handler behind an
// Authenticator always has it.
func Of(ctx context.Context) workspace.Principal {
	p, ok := ctx.Value(principalKey{}).(workspace.Principal)
	if !ok {
		panic("auth: the handler is not behind an authenticator")
	}
	return p
}

// Workspace returns the workspace that the request acts for.
func Workspace(ctx context.Context) string { return Of(ctx).Workspace }
