package auth

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

const (
	// HeaderConsole holds the proof of a session; with any other text, it marks a request of
	// the console that needs no session yet. A page of another origin cannot send the header:
	// a browser sends a preflight before a request with a custom header, and the server's
	// answer names no origin.
	HeaderConsole = "X-Slipway-Console"
	// cookieSession holds the token of a session. The name of each cookie of a sign-in at an issuer
	// begins with cookieSignIn: a cookie with the secrets, until the issuer sends the browser back,
	// and then cookieBinder, until the browser has its session.
	cookieSession = "slipway_session"
	cookieSignIn  = "slipway_sign_in"
	cookieBinder  = "slipway_sign_in_code"
	// hostOnly is the prefix of the name of a cookie that browsers accept only from the
	// cookie's own host, and only over encrypted connections.
	hostOnly = "__Host-"
)

// Sessions finds the principal that a session acts for.
type Sessions interface {
	// Authenticate finds the principal of a browser's session by its two halves.
	Authenticate(ctx context.Context, token, proof string) (workspace.Principal, error)
	// Bearer finds the principal of a session of the command line.
	Bearer(ctx context.Context, token string) (workspace.Principal, error)
}

// SessionCookies reads and writes the cookies of sessions.
type SessionCookies struct {
	// Secure says that clients reach the server over encrypted connections only.
	Secure bool
}

func (c SessionCookies) name(cookie string) string {
	if c.Secure {
		return hostOnly + cookie
	}
	return cookie
}

// IsSessionCookie reports whether a cookie of that name may hold the token of a session, or the
// secrets of a sign-in.
func IsSessionCookie(name string) bool {
	name = strings.TrimPrefix(name, hostOnly)
	return name == cookieSession || strings.HasPrefix(name, cookieSignIn)
}

// Session returns the two halves of the session that a request carries: the token from its
// cookie, and the proof from its header, which may be missing.
func (c SessionCookies) Session(r *http.Request) (token, proof string, ok bool) {
	token = c.read(r, cookieSession)
	return token, r.Header.Get(HeaderConsole), token != ""
}

// Cookie returns the cookie that holds a token for some time; a life of 0 removes the cookie.
// Scripts cannot read the cookie, and browsers send it only with requests that pages of this
// site cause.
func (c SessionCookies) Cookie(token string, life time.Duration) *http.Cookie {
	return c.cookie(cookieSession, token, life, http.SameSiteStrictMode)
}

// SignIn returns the cookie that holds the secrets of the sign-in with this state for some time; a
// life of 0 removes the cookie. Browsers send it also when the issuer's page leads back here. Each
// sign-in has its own cookie, so a person may begin several.
func (c SessionCookies) SignIn(state, secrets string, life time.Duration) *http.Cookie {
	return c.cookie(signInName(state), secrets, life, http.SameSiteLaxMode)
}

// SignInOf returns the secrets of the sign-in with this state, if the browser has begun it.
func (c SessionCookies) SignInOf(r *http.Request, state string) (secrets string, ok bool) {
	secrets = c.read(r, signInName(state))
	return secrets, secrets != ""
}

// signInName is the name of a sign-in's cookie: the first characters of the state tell sign-ins of
// one browser apart.
func signInName(state string) string { return cookieSignIn + "_" + state[:min(len(state), 8)] }

// Binder returns the cookie that binds the code of a sign-in to this browser for some time; a life
// of 0 removes the cookie.
func (c SessionCookies) Binder(binder string, life time.Duration) *http.Cookie {
	return c.cookie(cookieBinder, binder, life, http.SameSiteStrictMode)
}

// BinderOf returns the value of the cookie Binder; "" if the browser has none.
func (c SessionCookies) BinderOf(r *http.Request) string { return c.read(r, cookieBinder) }

func (c SessionCookies) read(r *http.Request, name string) string {
	cookie, err := r.Cookie(c.name(name))
	if err != nil {
		return ""
	}
	return cookie.Value
}

func (c SessionCookies) cookie(name, value string, life time.Duration, site http.SameSite) *http.Cookie {
	age := int(life.Seconds())
	if age == 0 {
		age = -1
	}
	return &http.Cookie{ //nolint:gosec // it is Secure where the server speaks TLS
		Name: c.name(name), Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: c.Secure, SameSite: site,
	}
}

// checkOrigin refuses a request with a session cookie if a page of another origin may have
// caused it.
func checkOrigin(r *http.Request) error {
	if r.Header.Get(HeaderConsole) == "" {
		return fault.New(fault.Unauthorized, "A request with the cookie of a session needs the header %s.", HeaderConsole)
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return fault.New(fault.Forbidden, "A page of another origin may not use a session of the console.")
	}
	return nil
}
