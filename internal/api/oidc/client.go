package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// longestAge is how old the ID token of a sign-in may be.
const longestAge = 10 * time.Minute

// Scopes are the scopes that a person's sign-in asks for: the email address, by which members are
// found.
var Scopes = []string{oidc.ScopeOpenID, "email", "profile"}

// Client signs people in at one issuer. The client that is registered at the issuer is public: it
// has no secret, because the command line could not keep one. A code of the issuer is bound to the
// browser's sign-in by PKCE (RFC 7636) instead.
type Client struct {
	verifier *Verifier
	issuer   *issuer
}

// PendingSignIn holds the secrets of a sign-in that a browser has started. Only this browser may
// have them.
type PendingSignIn struct {
	// State comes back with the code, Nonce inside the token.
	State, Nonce string
	// Proof is the verifier of PKCE.
	Proof string
}

// NewClient returns a client of an issuer, whose Audience is the client's id. It sends no request
// yet. If client is nil, the Client uses a client of its own.
func NewClient(config Issuer, client *http.Client, now clock.Clock) *Client {
	v := NewVerifier([]Issuer{config}, client, now)
	return &Client{v, v.issuers[config.URL]}
}

// Issuer is the issuer of the client.
func (c *Client) Issuer() Issuer { return c.issuer.Issuer }

// Start returns the address at which a browser begins a sign-in. The issuer sends the browser back
// to the address redirect.
func (c *Client) Start(ctx context.Context, redirect string) (address string, pending PendingSignIn, err error) {
	config, err := c.config(ctx, redirect)
	if err != nil {
		return "", PendingSignIn{}, err
	}
	pending = PendingSignIn{State: rand.Text(), Nonce: rand.Text(), Proof: oauth2.GenerateVerifier()}
	return config.AuthCodeURL(pending.State, oidc.Nonce(pending.Nonce), oauth2.S256ChallengeOption(pending.Proof)), pending, nil
}

// Finish exchanges the code of a sign-in for the person's token, and checks the token. A code that
// the issuer refuses, or a token of another sign-in, is a fault.Unauthorized. Everything else that
// the issuer says or does not say is a fault.Unavailable, which wraps the cause for the log.
func (c *Client) Finish(ctx context.Context, redirect, code string, pending PendingSignIn) (Token, error) {
	config, err := c.config(ctx, redirect)
	if err != nil {
		return Token{}, err
	}
	answer, err := config.Exchange(oidc.ClientContext(ctx, c.issuer.client), code, oauth2.VerifierOption(pending.Proof))
	if IsRefusal(err) {
		return Token{}, fault.New(fault.Unauthorized, "The issuer does not accept the code. Sign in again.")
	}
	if err != nil {
		return Token{}, unavailable("The issuer does not answer. Try again.", Answered(err))
	}
	text, _ := answer.Extra("id_token").(string)
	token, err := c.verify(ctx, text)
	if err != nil {
		return Token{}, err
	}
	nonce, _ := token.Claims["nonce"].(string)
	if subtle.ConstantTimeCompare([]byte(nonce), []byte(pending.Nonce)) != 1 {
		return Token{}, fault.New(fault.Unauthorized, "The token belongs to another sign-in (nonce).")
	}
	return token, nil
}

// VerifyUnbound checks the token of a person that came without a sign-in of a browser. The token of
// a browser's sign-in, which has a nonce, is a fault.Unauthorized: the browser alone may use it.
func (c *Client) VerifyUnbound(ctx context.Context, text string) (Token, error) {
	token, err := c.verify(ctx, text)
	if err != nil {
		return Token{}, err
	}
	if _, ok := token.Claims["nonce"]; ok {
		return Token{}, fault.New(fault.Unauthorized, "The token belongs to the sign-in of a browser (nonce).")
	}
	return token, nil
}

// verify checks the token of a person that the issuer has just made for this client.
func (c *Client) verify(ctx context.Context, text string) (Token, error) {
	token, err := c.verifier.Verify(ctx, text)
	if err != nil {
		return Token{}, err
	}
	party, named := token.Claims["azp"]
	several, _ := token.Claims["aud"].([]any)
	issuedAt, _ := timeOf(token.Claims["iat"])
	switch {
	case !isIDToken(text):
		return Token{}, fault.New(fault.Unauthorized, "The token is of another type (typ) than an ID token, which is needed.")
	case named && party != c.issuer.Audience || !named && len(several) > 1:
		return Token{}, fault.New(fault.Unauthorized, "The token was made for another client (azp) than %s.", c.issuer.Audience)
	case c.verifier.now().Sub(issuedAt) > longestAge:
		return Token{}, fault.New(fault.Unauthorized, "The token was made too long ago (iat). Sign in again.")
	}
	return token, nil
}

// isIDToken reports whether the header of a good token lets it be an ID token. Tokens for other
// purposes name their type: "at+jwt" (RFC 9068), "logout+jwt" (Back-Channel Logout).
func isIDToken(text string) bool {
	header, _, _ := strings.Cut(text, ".")
	decoded, err := base64.RawURLEncoding.DecodeString(header)
	var said struct {
		Type string `json:"typ"`
	}
	return err == nil && json.Unmarshal(decoded, &said) == nil && (said.Type == "" || strings.EqualFold(said.Type, "JWT"))
}

func (c *Client) config(ctx context.Context, redirect string) (*oauth2.Config, error) {
	at, err := c.issuer.endpoints(ctx)
	if err == nil {
		err = at.CheckPrivate()
	}
	if err != nil {
		return nil, unavailable("The issuer "+c.issuer.URL+" does not answer. Try again.", err)
	}
	return at.Config(c.issuer.Audience, redirect), nil
}

// unavailable is a fault that wraps its cause.
func unavailable(message string, cause error) error {
	return fmt.Errorf("%w (%w)", fault.New(fault.Unavailable, "%s", message), cause)
}

// IsRefusal reports whether an issuer refuses a code or a refresh token. Its other errors say
// nothing about the person: for example the client may be unknown to it.
func IsRefusal(err error) bool {
	answer, ok := errors.AsType[*oauth2.RetrieveError](err)
	return ok && answer.ErrorCode == "invalid_grant"
}

// Answered returns the error of a request for tokens without the body of the answer, which may have
// secrets.
func Answered(err error) error {
	if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return fmt.Errorf("the issuer answers %s %q", answer.Response.Status, answer.ErrorCode)
	}
	return err
}
