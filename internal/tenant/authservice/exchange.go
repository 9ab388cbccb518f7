package authservice

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/slipway-run/slipway/internal/base/outbound"
)

// salesforceLifetime is how long a token of Salesforce is trusted. Salesforce does not say how
// long its tokens live. An administrator there may choose 15 minutes or more.
const salesforceLifetime = 15 * time.Minute

// grant is a provider's answer that contains a token.
type grant struct {
	credentials
	// scopes is nil if the provider named no scopes. This means that the requested scopes were
	// granted (RFC 6749, section 5.1).
	scopes []string
	// contained are scopes that the named scopes contain.
	contained []string
	// lifetime is 0 if the provider did not name it.
	lifetime time.Duration
	label    string
}

// protocolScopes are requests to the protocol itself. Providers do not repeat them among the
// granted scopes.
var protocolScopes = []string{"openid", "profile", "email", "offline_access", "refresh_token"}

// granted returns the scopes of a grant, given the scopes that were requested.
func (g grant) granted(requested []string) []string {
	if g.scopes == nil {
		return requested
	}
	granted := g.scopes
	for _, scope := range requested {
		if slices.Contains(protocolScopes, scope) || slices.Contains(g.contained, scope) {
			granted = with(granted, scope)
		}
	}
	return granted
}

// conversation is a provider prepared for one exchange, with its secret opened.
type conversation struct {
	*oauth2.Config
	provider Provider
	// consent holds further parameters of the consent URL.
	consent []oauth2.AuthCodeOption
}

func (s *Service) converse(ctx context.Context, p Provider, redirect string, scopes []string) (conversation, error) {
	clientSecret, err := s.openSecret(ctx, p)
	if err != nil {
		return conversation{}, err
	}
	style := oauth2.AuthStyleInParams
	if p.ClientAuth == AuthBasic {
		style = oauth2.AuthStyleInHeader
	}
	requested := slices.Clone(scopes)
	switch p.Type {
	case Microsoft:
		requested = with(requested, "offline_access")
	case Salesforce:
		requested = with(requested, "refresh_token")
	}
	c := conversation{provider: p, Config: &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: clientSecret, RedirectURL: redirect, Scopes: requested,
		Endpoint: oauth2.Endpoint{AuthURL: p.AuthURL, TokenURL: p.TokenURL, AuthStyle: style},
	}}
	if p.Type == Slack {
		c.slackScopes()
	}
	return c, nil
}

func with(scopes []string, scope string) []string {
	if slices.Contains(scopes, scope) {
		return scopes
	}
	return append(scopes, scope)
}

// consentURL is the URL that the user's browser visits.
func (c conversation) consentURL(state, verifier string) string {
	return c.AuthCodeURL(state, append(c.options(oauth2.S256ChallengeOption(verifier)), c.consent...)...)
}

// options are the parameters of a request at the provider.
func (c conversation) options(challenge oauth2.AuthCodeOption) (options []oauth2.AuthCodeOption) {
	if c.provider.UsesPKCE {
		options = append(options, challenge)
	}
	if c.provider.Resource != "" {
		options = append(options, oauth2.SetAuthURLParam("resource", c.provider.Resource))
	}
	return options
}

// redeem exchanges a code for a token.
func (s *Service) redeem(ctx context.Context, c conversation, code, verifier string) (grant, *failure) {
	options := c.options(oauth2.VerifierOption(verifier))
	token, err := c.Exchange(s.withClient(ctx, c.provider), code, options...)
	if err != nil {
		return grant{}, failed(err, code, verifier, c.ClientSecret)
	}
	return c.grant(token)
}

// renew exchanges a refresh token for a new token, which keeps the refresh token if the answer
// has no other refresh token (RFC 6749, section 6; package oauth2 does this).
func (s *Service) renew(ctx context.Context, c conversation, refresh string) (grant, *failure) {
	token, err := c.TokenSource(s.withClient(ctx, c.provider), &oauth2.Token{RefreshToken: refresh}).Token()
	if err != nil {
		return grant{}, failed(err, refresh, c.ClientSecret)
	}
	return c.grant(token)
}

func (s *Service) withClient(ctx context.Context, p Provider) context.Context {
	client := *s.client
	if p.Type == Slack {
		client.Transport = slackAnswers{client.Transport}
	}
	return context.WithValue(ctx, oauth2.HTTPClient, &client)
}

// grant reads a provider's answer.
func (c conversation) grant(token *oauth2.Token) (grant, *failure) {
	g := grant{credentials: credentials{token.AccessToken, token.RefreshToken}, label: label(token)}
	// Slack calls the type user or bot.
	bearer := token.TokenType == "" || strings.EqualFold(token.TokenType, "bearer") || c.provider.Type == Slack
	switch {
	case !bearer: // RFC 6749, section 7.1: a token of an unknown type must not be used
		return grant{}, &failure{code: codeUnusable, words: "The provider gave a token of another type than Bearer."}
	case !usable(g.Access) || g.Refresh != "" && !usable(g.Refresh):
		return grant{}, &failure{code: codeUnusable, words: "The provider gave a token that cannot be sent."}
	}
	if named, _ := token.Extra("scope").(string); named != "" {
		g.scopes = strings.FieldsFunc(named, func(r rune) bool { return r == ' ' || r == ',' })
		g.contained = c.contained(g.scopes)
	}
	switch {
	case token.ExpiresIn > 0:
		g.lifetime = time.Duration(token.ExpiresIn) * time.Second
	case !token.Expiry.IsZero(): // an answer in form encoding
		g.lifetime = time.Until(token.Expiry).Round(time.Second)
	case c.provider.Type == Salesforce:
		g.lifetime = salesforceLifetime
	}
	return g, nil
}

// usable reports whether a token can be the value of a header (RFC 6749, appendix A.12:
// visible ASCII).
func usable(token string) bool {
	return token != "" && len(token) <= maxCredentials*4 && !strings.ContainsFunc(token, func(r rune) bool { return r <= 0x20 || r > 0x7e })
}

// label returns the name of a token's account from the ID token. The ID token came from the
// token endpoint itself, so its signature needs no check (OpenID Connect Core, section
// 3.1.3.7), and no decision depends on it.
func label(token *oauth2.Token) string {
	idToken, _ := token.Extra("id_token").(string)
	parts := strings.Split(idToken, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Email    string `json:"email"`
		Username string `json:"preferred_username"`
		Subject  string `json:"sub"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return ""
	}
	names := []string{claims.Email, claims.Username, claims.Subject}
	return cmp.Or(slices.DeleteFunc(names, func(name string) bool { return len(name) > maxName })...)
}

// revoke revokes a token at its provider (RFC 7009). A provider that cannot revoke, or does not
// know the token any more, is no error; any error is a *failure. Slack refuses with status 200.
func (s *Service) revoke(ctx context.Context, p Provider, held credentials) error {
	if p.RevocationURL == "" {
		return nil
	}
	c, err := s.converse(ctx, p, "", nil)
	if err != nil {
		return err
	}
	// Revoking the refresh token also revokes the access tokens that were made from it
	// (section 2.1). Slack revokes access tokens only.
	token, hint := held.Refresh, "refresh_token"
	if token == "" || p.Type == Slack {
		token, hint = held.Access, "access_token"
	}
	form := url.Values{"token": {token}, "token_type_hint": {hint}}
	if p.ClientAuth != AuthBasic {
		form.Set("client_id", p.ClientID)
		if c.ClientSecret != "" {
			form.Set("client_secret", c.ClientSecret)
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.RevocationURL, strings.NewReader(form.Encode()))
	if err != nil {
		return &failure{code: codeUnreachable, words: "The provider's revocation URL cannot be used."}
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	if p.ClientAuth == AuthBasic {
		request.SetBasicAuth(url.QueryEscape(p.ClientID), url.QueryEscape(c.ClientSecret))
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return failed(err, token, c.ClientSecret)
	}
	defer answer.Body.Close()
	var refusal struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	err = json.NewDecoder(answer.Body).Decode(&refusal)
	switch {
	case answer.StatusCode >= 200 && answer.StatusCode < 300 && refusal.Error == "":
		return nil // the body of a success need not be JSON
	case errors.Is(err, outbound.ErrTooLarge):
		return failed(err)
	}
	return answered(answer.StatusCode, refusal.Error, refusal.Description, []string{token, c.ClientSecret})
}
