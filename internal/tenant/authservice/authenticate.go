package authservice

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/oauth2"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Status is how an Answer ends. The words are the interface's; there are no others.
type Status string

const (
	// Completed: there is a token to use.
	Completed Status = "completed"
	// Pending: the user must visit the URL. Wait also returns it when it was not asked to
	// wait.
	Pending Status = "pending"
	// ConnectionRequired: an agent asks without a user, and no suitable token is connected to
	// it.
	ConnectionRequired Status = "connection_required"
	// TokenExpired: the token that was named can no longer be used; the user can renew it at
	// the URL.
	TokenExpired Status = "token_expired"
	// Timeout: the wait is over, and the user has not decided.
	Timeout Status = "timeout"
	// NotFound: there will be no token under this id. When the user or the provider refused,
	// Error says so.
	NotFound Status = "not_found"
)

// Answer is the result of Authenticate and Wait.
type Answer struct {
	Status Status
	// URL and AuthID are set while the request waits for the user's consent.
	URL, AuthID string
	// Token is the access token, and the other members describe it, if the status is
	// completed.
	Token, TokenID, User string
	Expires              time.Time
	Metadata             json.RawMessage
	// Error and ErrorDescription say why there will be no token.
	Error, ErrorDescription string
}

// AuthRequest asks for a token.
type AuthRequest struct {
	Workspace, ProviderID string
	// User is the token's owner. It may be "" for an Agent, which then uses a token that is
	// connected to it.
	User, Agent string
	Scopes      []string
	// ForceNew asks for consent again, for example for another account; the result is an
	// additional token.
	ForceNew bool
	// TokenID names one of the tokens; "" takes the default.
	TokenID string
	// Default makes the resulting token the default from then on.
	Default bool
	// RedirectURI is the address to which the provider sends the user back: the callback of
	// this server as the client sees it.
	RedirectURI string
}

func (r AuthRequest) owner() Owner { return Owner{r.Workspace, r.User} }

// Bounds of the values that clients choose.
const (
	maxID     = 256
	maxScopes = 100
)

func checkIdentity(user, agent string) error {
	switch {
	case user == "" && agent == "":
		return fault.New(fault.Invalid, "user_id or agent_id is required.")
	case len(user) > maxID || len(agent) > maxID || !utf8.ValidString(user) || !utf8.ValidString(agent):
		return fault.New(fault.Invalid, "user_id and agent_id must be text of at most %d bytes.", maxID)
	}
	return nil
}

// checkScopes allows only the characters of RFC 6749, section 3.3.
func checkScopes(scopes []string) error {
	if len(scopes) > maxScopes {
		return fault.New(fault.Invalid, "scopes must have at most %d entries.", maxScopes)
	}
	for _, scope := range scopes {
		if scope == "" || len(scope) > maxID || strings.ContainsFunc(scope, func(r rune) bool { return r <= 0x20 || r > 0x7e || r == '"' || r == '\\' || r == ',' }) {
			return fault.New(fault.Invalid, "Each of scopes must have 1 to %d visible ASCII characters, and no quote, backslash or comma.", maxID)
		}
	}
	return nil
}

// Authenticate returns a token with the requested scopes, refreshed if it is near its end, or
// the URL at which the user consents.
func (s *Service) Authenticate(ctx context.Context, r AuthRequest) (Answer, error) {
	if err := cmp.Or(checkIdentity(r.User, r.Agent), checkScopes(r.Scopes)); err != nil {
		return Answer{}, err
	}
	p, err := s.Provider(ctx, r.Workspace, r.ProviderID)
	if err != nil {
		return Answer{}, err
	}
	held, err := s.findToken(ctx, p, r)
	if err != nil {
		return Answer{}, err
	}
	if held != nil && !r.ForceNew && held.covers(r.Scopes) {
		t, plain, err := s.use(ctx, held.TokenRef)
		if err == nil {
			return completed(t, plain), nil
		}
		if !errors.Is(err, errExpired) && !fault.Is(err, fault.NotFound) {
			return Answer{}, err
		}
		if r.TokenID != "" && held.User == r.User {
			return s.ask(ctx, p, r, held, TokenExpired)
		}
	}
	if r.User == "" {
		return Answer{Status: ConnectionRequired}, nil
	}
	return s.ask(ctx, p, r, held, Pending)
}

func completed(t Token, plain credentials) Answer {
	return Answer{Status: Completed, Token: plain.Access, TokenID: t.Token, User: t.User, Expires: t.Expires, Metadata: t.Metadata}
}

// ask begins a request for the user's consent. The scopes that the token had before are
// requested again, so a new scope does not lose the old scopes.
func (s *Service) ask(ctx context.Context, p Provider, r AuthRequest, old *Token, status Status) (Answer, error) {
	if err := checkRedirect(r.RedirectURI); err != nil {
		return Answer{}, err
	}
	body := requestBody{Agent: r.Agent, Scopes: slices.Clone(r.Scopes), Redirect: r.RedirectURI, Default: r.Default}
	if old != nil && old.User == r.User && !r.ForceNew {
		body.Replaces, body.Agent = old.Token, old.Agent
		for _, scope := range old.Scopes {
			body.Scopes = with(body.Scopes, scope)
		}
	}
	verifier := oauth2.GenerateVerifier()
	c, err := s.converse(ctx, p, r.RedirectURI, body.Scopes)
	if err != nil {
		return Answer{}, err
	}
	request, state, err := s.storeRequest(ctx, p, r.owner(), body, verifier)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Status: status, URL: c.consentURL(state, verifier), AuthID: request.ID, User: r.User}, nil
}

// findToken returns the token that a request means, or nil if there is no such token: the token
// that the request names, else the user's default, else the newest suitable token, else the
// newest suitable token that is connected to the agent. It may lack scopes, or be expired.
func (s *Service) findToken(ctx context.Context, p Provider, r AuthRequest) (*Token, error) {
	own, err := s.tokens(ctx, r.owner())
	if err != nil {
		return nil, err
	}
	token := choose(own, p, r)
	if token == nil && r.Agent != "" {
		if token, err = s.connected(ctx, p, r); err != nil {
			return nil, err
		}
	}
	if token == nil && r.TokenID != "" {
		return nil, tokenNotFound(r.TokenID)
	}
	return token, nil
}

// choose returns the token that a request means among the user's own tokens. While there is a
// default, no other token takes its place, because that token could be of another account.
func choose(own []Token, p Provider, r AuthRequest) *Token {
	var newest *Token
	for _, t := range slices.Backward(own) {
		switch {
		case !p.holds(t) || t.Agent != r.Agent:
			// A token of another agent must be connected to this agent.
		case r.TokenID != "":
			if t.Token == r.TokenID {
				return &t
			}
		case t.IsDefault:
			return &t
		case newest == nil && t.Status != Expired && t.covers(r.Scopes):
			newest = &t
		}
	}
	return newest
}

// connected returns the newest suitable token that is connected to an agent. A caller that
// asks for a user gets only tokens of that user, so no user acts with another user's account
// without knowing it.
func (s *Service) connected(ctx context.Context, p Provider, r AuthRequest) (*Token, error) {
	connections, err := s.connections(ctx, r.Workspace, r.Agent)
	if err != nil {
		return nil, err
	}
	for _, c := range slices.Backward(connections) {
		t := c.Token
		mine := r.User == "" || r.User == t.User
		named := r.TokenID == "" || r.TokenID == t.Token
		if p.holds(t) && mine && named && (r.TokenID != "" || t.Status != Expired && t.covers(r.Scopes)) {
			return &t, nil
		}
	}
	return nil, nil
}

// tokens returns all tokens of an owner, oldest first, and marks the default of each provider
// and agent.
func (s *Service) tokens(ctx context.Context, owner Owner) ([]Token, error) {
	if owner.User == "" {
		return nil, nil
	}
	notes, err := table.AllItems(ctx, s.Table, keys.AuthDefaults(owner.Workspace, owner.User))
	if err != nil {
		return nil, fmt.Errorf("list default tokens: %w", err)
	}
	defaults := map[string]bool{}
	for _, note := range notes {
		defaults[note.Text(attrToken)] = true
	}
	return record.All(ctx, s.Table, "tokens", keys.AuthTokens(owner.Workspace, owner.User), func(item *table.Item) (Token, error) {
		t, err := decodeToken(owner.Workspace, item)
		t.IsDefault = defaults[t.Token]
		return t, err
	})
}

// token returns one token, but not whether it is the default; an unknown token is a
// fault.NotFound.
func (s *Service) token(ctx context.Context, ref TokenRef) (Token, error) {
	if ref.User == "" || len(ref.User) > maxID || !id.Valid(ref.Token) {
		return Token{}, tokenNotFound(ref.Token)
	}
	return record.One(ctx, s.Table, "token", ref.Key(), tokenNotFound(ref.Token), record.In(ref.Workspace, decodeToken))
}
