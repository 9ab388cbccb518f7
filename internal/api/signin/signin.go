// Package signin signs people in at an OpenID Connect issuer.
//
// The server names one issuer and its client there. The members of a workspace may sign in: the
// issuer proves the email address or the subject by which a workspace knows its member (package
// oidc). A session of a person has the role that the member has at each request, and ends when the
// member is removed.
//
// A browser goes to /sign-in/browser, from there to the issuer, and comes back to
// /sign-in/callback (the authorization code flow with PKCE). The secrets of the sign-in are in a
// cookie of this browser meanwhile. The callback leads to the console with a code in the fragment
// of the address, which the page exchanges for a session in the same way as a code of `slipway
// open`. A second cookie binds the code to this browser, so that nobody can sign other people in
// to an account of their own by a link. All addresses to which this package leads a browser are of
// the issuer and of the console; no request can name any other address.
//
// The command line gets the person's token from the issuer itself, by the device flow (RFC 8628),
// and exchanges the token here for a session (POST /sign-in/token). GET /sign-in tells it, and the
// console, which issuer to ask.
package signin

import (
	"encoding/json"
	"net/http"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/oidc"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/session"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// The paths.
const (
	Path         = "/sign-in"
	BrowserPath  = "/sign-in/browser"
	callbackPath = "/sign-in/callback"
	TokenPath    = "/sign-in/token"
)

// maxBody is how large the body of an exchange may be, in bytes: a token of 16 KiB and a name.
const maxBody = 20 << 10

// Config holds the settings and dependencies of the sign-in.
type Config struct {
	// Client is the client at the issuer; nil if people do not sign in at an issuer.
	Client     *oidc.Client
	Workspaces *workspace.Store
	Sessions   *session.Store
	Cookies    auth.SessionCookies
	// BaseURL is the address of the server.
	BaseURL string
}

// Register serves the sign-in. Without an issuer, GET /sign-in says so, and sessions from the time
// before can only be ended.
func Register(mux *web.Mux, config Config) {
	s := signIn{config, mux}
	mux.Handle("GET "+Path, mux.Answering(s.offer))
	mux.Handle("DELETE "+TokenPath, mux.Answering(s.revoke))
	if config.Client == nil {
		return
	}
	mux.Handle("GET "+BrowserPath, mux.Answering(s.start))
	mux.Handle("GET "+callbackPath, mux.Answering(s.end))
	mux.Handle("HEAD "+callbackPath, mux.Answering(s.look))
	mux.Handle("POST "+TokenPath, mux.Answering(s.exchange))
}

type signIn struct {
	Config

	mux *web.Mux
}

// Offer is the answer to GET /sign-in.
type Offer struct {
	// Issuer is where people sign in; nil if they cannot.
	Issuer *Issuer `json:"issuer"`
}

// Issuer is an issuer and the public client that signs people in there.
type Issuer struct {
	URL      string   `json:"url"`
	ClientID string   `json:"client_id"`
	Scopes   []string `json:"scopes"`
}

func (s signIn) offer(w http.ResponseWriter, _ *http.Request) error {
	var offer Offer
	if s.Client != nil {
		issuer := s.Client.Issuer()
		offer.Issuer = &Issuer{issuer.URL, issuer.Audience, oidc.Scopes}
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(offer)
}

// Wanted is the body of POST /sign-in/token.
type Wanted struct {
	// Token is the person's ID token.
	Token string `json:"id_token"`
	// Workspace is the id or the name of the workspace; it may be empty if the person is a member
	// of only one workspace.
	Workspace string `json:"workspace,omitempty"`
}

// Granted is the answer to POST /sign-in/token.
type Granted struct {
	// Token is the bearer token of the session.
	Token     string `json:"token"`
	ExpiresAt string `json:"expires_at"`
	Workspace string `json:"workspace_id"`
	User      string `json:"user"`
	Role      string `json:"role"`
}

// exchange answers the owner of an ID token with a session.
func (s signIn) exchange(w http.ResponseWriter, r *http.Request) error {
	var wanted Wanted
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&wanted); err != nil || wanted.Token == "" {
		return fault.New(fault.Invalid, `The body must be a JSON object with the field "id_token".`)
	}
	token, err := s.Client.VerifyUnbound(r.Context(), wanted.Token)
	if fault.Is(err, fault.Unavailable) {
		s.mux.Unforeseen(r.Context(), err)
	}
	if err != nil {
		return err
	}
	workspaceID, member, err := s.find(r.Context(), token, wanted.Workspace)
	if err != nil {
		return err
	}
	text, expires, err := s.Sessions.Grant(r.Context(), person(workspaceID, member, token))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	return json.NewEncoder(w).Encode(Granted{text, clock.Format(expires), workspaceID, member.User, string(member.Role)})
}

// revoke ends the session whose token the request carries.
func (s signIn) revoke(w http.ResponseWriter, r *http.Request) error {
	token, ok := auth.Bearer(r.Header)
	if !ok {
		return fault.New(fault.Unauthorized, "The header %s is missing.", auth.HeaderBearer)
	}
	if err := s.Sessions.Revoke(r.Context(), token); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func person(workspaceID string, member workspace.Member, token oidc.Token) session.Person {
	return session.Person{Workspace: workspaceID, Member: member.ID, Since: member.Created, Subject: token.Person()}
}
