package signin

import (
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/api/oidc"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/session"
)

// beginLife is how long a person may take at the issuer.
const beginLife = 10 * time.Minute

// Reasons for which a sign-in fails, as the console knows them.
const (
	reasonState   = "state"   // not the sign-in that this browser has begun, or too late
	reasonDenied  = "denied"  // the issuer, or the person there, refuses
	reasonMember  = "member"  // not a member of the workspace
	reasonSeveral = "several" // a member of several workspaces, and has named no workspace
	reasonIssuer  = "issuer"  // the issuer does not answer
)

// moved marks a request that has been led to the server's own address. A proxy may change the host
// of requests, so one such redirect must do.
const moved = "moved"

// start sends a browser to the issuer. The issuer sends the browser back to the server's own
// address, so the browser must have its cookie from there.
func (s signIn) start(w http.ResponseWriter, r *http.Request) error {
	named := r.URL.Query().Get("workspace")
	if strings.ContainsFunc(named, isNoName) {
		return fault.New(fault.Invalid, "workspace: %q is neither the id nor the name of a workspace.", named)
	}
	if at, err := url.Parse(s.BaseURL); err == nil && !strings.EqualFold(r.Host, at.Host) && !r.URL.Query().Has(moved) {
		query := url.Values{moved: {"1"}}
		if named != "" {
			query.Set("workspace", named)
		}
		redirect(w, s.BaseURL+BrowserPath+"?"+query.Encode())
		return nil
	}
	address, begun, err := s.Client.Start(r.Context(), s.BaseURL+callbackPath)
	if err != nil {
		return s.refuse(w, r, err)
	}
	http.SetCookie(w, s.Cookies.SignIn(begun.State, pack(begun, named), beginLife))
	redirect(w, address)
	return nil
}

// isNoName reports whether a character is in no name and in no id of a workspace.
func isNoName(c rune) bool {
	return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", c)
}

// look answers a HEAD request for the callback, which must not use up the issuer's code.
func (s signIn) look(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Allow", http.MethodGet)
	w.WriteHeader(http.StatusMethodNotAllowed)
	return nil
}

// end takes a browser back from the issuer, and leads it to the console: with a code for a session,
// or with the reason why there is none. A sign-in that was begun can be ended once.
func (s signIn) end(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	secrets, _ := s.Cookies.SignInOf(r, query.Get("state"))
	begun, named, ok := unpack(secrets)
	if !ok || subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(begun.State)) != 1 {
		s.lead(w, "refused/"+reasonState)
		return nil
	}
	http.SetCookie(w, s.Cookies.SignIn(begun.State, "", 0))
	if query.Get("code") == "" {
		s.lead(w, "refused/"+reasonDenied)
		return nil
	}
	token, err := s.Client.Finish(r.Context(), s.BaseURL+callbackPath, query.Get("code"), begun)
	if err != nil {
		return s.refuse(w, r, err)
	}
	workspaceID, member, err := s.find(r.Context(), token, named)
	if err != nil {
		return s.refuse(w, r, err)
	}
	code, binder, err := s.Sessions.PersonCode(r.Context(), person(workspaceID, member, token))
	if err != nil {
		return err
	}
	http.SetCookie(w, s.Cookies.Binder(binder, session.CodeLife))
	s.lead(w, code)
	return nil
}

// refuse tells the console why a sign-in fails. Any other error is returned.
func (s signIn) refuse(w http.ResponseWriter, r *http.Request, err error) error {
	switch {
	case fault.Is(err, fault.Conflict):
		s.lead(w, "refused/"+reasonSeveral)
	case fault.Is(err, fault.Unauthorized):
		s.lead(w, "refused/"+reasonDenied)
	case fault.Is(err, fault.Forbidden):
		s.lead(w, "refused/"+reasonMember)
	case fault.Is(err, fault.Unavailable):
		s.mux.Unforeseen(r.Context(), err)
		s.lead(w, "refused/"+reasonIssuer)
	default:
		return err
	}
	return nil
}

// lead sends a browser to the page of the console that ends a sign-in. A fragment is not sent to
// any server.
func (s signIn) lead(w http.ResponseWriter, outcome string) {
	redirect(w, "/console/#/sign-in/"+outcome)
}

// redirect sends a browser to an address. No address of a sign-in may be passed on as a referrer.
func redirect(w http.ResponseWriter, address string) {
	w.Header().Set("Location", address)
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusSeeOther)
}

// pack writes the secrets of a sign-in as the value of a cookie. Only the last part may contain a
// dot.
func pack(begun oidc.PendingSignIn, named string) string {
	return strings.Join([]string{begun.State, begun.Nonce, begun.Proof, named}, ".")
}

func unpack(value string) (begun oidc.PendingSignIn, named string, ok bool) {
	parts := strings.SplitN(value, ".", 4)
	if len(parts) != 4 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return oidc.PendingSignIn{}, "", false
	}
	return oidc.PendingSignIn{State: parts[0], Nonce: parts[1], Proof: parts[2]}, parts[3], true
}
