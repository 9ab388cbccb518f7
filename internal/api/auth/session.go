package auth

import (
	"context"
	"net/http"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
)

const (
	// HeaderConsole marks the requests of the console. A page of another origin cannot send it: a
	// header of its own makes the browser ask first, and the server's answer names no origin.
	HeaderConsole = "X-Slipway-Console"
	// cookieSession holds the token of a session.
	cookieSession = "slipway_session"
)

// Sessions tells whom the session of a browser acts for.
type Sessions interface {
	Authenticate(ctx context.Context, token string) (apikey.Principal, error)
}

// SessionOf returns the token of the session whose cookie a request carries.
func SessionOf(r *http.Request) (token string, ok bool) {
	cookie, err := r.Cookie(cookieSession)
	if err != nil || cookie.Value == "" {
		return "", false
	}
	return cookie.Value, true
}

// SessionCookie is the cookie that holds a token for some time; a life of 0 removes it. Scripts
// cannot read the cookie, and browsers send it to this origin's own pages only.
func SessionCookie(token string, life time.Duration, secure bool) *http.Cookie {
	age := int(life.Seconds())
	if age == 0 {
		age = -1
	}
	return &http.Cookie{
		Name: cookieSession, Value: token, Path: "/", MaxAge: age, HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode,
	}
}

// checkOrigin refuses a request by cookie that a page of another origin may have caused.
func checkOrigin(r *http.Request) error {
	if r.Header.Get(HeaderConsole) == "" {
		return fault.New(fault.Unauthorized, "A request with the cookie of a session needs the header %s.", HeaderConsole)
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return fault.New(fault.Forbidden, "A page of another origin may not use a session of the console.")
	}
	return nil
}
