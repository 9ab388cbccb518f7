package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
)

const (
	// skew is the tolerated error of an issuer's clock.
	skew = time.Minute
	// longestToken is the most bytes that a token may have.
	longestToken = 16 << 10
	// maxRedirects is how many redirects of a request are followed.
	maxRedirects = 3
)

// Issuer is an issuer whose tokens the server accepts.
type Issuer struct {
	// URL is the value of iss in the tokens.
	URL string
	// Audience is the audience that tokens must name: this server.
	Audience string
	// Members says that the tokens belong to people, who are looked up among a workspace's
	// members. Otherwise they belong to programs, which a workspace's trust rules admit.
	Members bool
}

// ParseIssuers reads issuers, each written as URL=AUDIENCE. An address with plain HTTP must be
// on this machine.
func ParseIssuers(list []string, members bool) ([]Issuer, error) {
	issuers := make([]Issuer, len(list))
	for i, text := range list {
		address, audience, _ := strings.Cut(text, "=")
		parsed, err := url.Parse(address)
		if err != nil || parsed.Host == "" || audience == "" {
			return nil, fmt.Errorf("an issuer is written as https://issuer=audience, not %q", text)
		}
		if !isPrivate(parsed) {
			return nil, fmt.Errorf("the issuer %s must be asked by https", address)
		}
		issuers[i] = Issuer{URL: address, Audience: audience, Members: members}
	}
	return issuers, nil
}

// isPrivate reports whether a request to the address is safe from changes on the way: by https,
// or on this machine.
func isPrivate(address *url.URL) bool {
	host := address.Hostname()
	return address.Scheme == "https" || (address.Scheme == "http" && (host == "127.0.0.1" || host == "localhost" || host == "::1"))
}

// Token is the content of a good token.
type Token struct {
	Issuer  Issuer
	Subject string
	// Claims are all of its claims; numbers are json.Numbers.
	Claims map[string]any
}

// Person names the owner of the token in logs and as the owner of resources.
func (t Token) Person() string { return t.Subject + " of " + t.Issuer.URL }

// Verifier checks tokens. It is safe for concurrent use.
type Verifier struct {
	issuers map[string]*issuer
	now     clock.Clock
}

// NewVerifier returns a Verifier for the tokens of the issuers. It sends no request yet. If
// client is nil, the Verifier uses a client of its own. Only redirects that follow allows are
// followed.
func NewVerifier(issuers []Issuer, client *http.Client, now clock.Clock) *Verifier {
	if client == nil {
		client = &http.Client{Timeout: fetchLimit}
	}
	own := *client
	own.CheckRedirect = follow
	v := &Verifier{issuers: map[string]*issuer{}, now: now}
	for _, config := range issuers {
		v.issuers[config.URL] = &issuer{Issuer: config, client: &own, now: now, turn: make(chan struct{}, 1)}
	}
	return v
}

// follow allows a redirect of a request that only reads, to an address that others cannot change on
// the way. Any other request has secrets, which are for the first address alone.
func follow(next *http.Request, before []*http.Request) error {
	if before[0].Method != http.MethodGet {
		return http.ErrUseLastResponse
	}
	if len(before) > maxRedirects || !isPrivate(next.URL) {
		return fmt.Errorf("the issuer leads to %s, which is not asked", next.URL.Redacted())
	}
	return nil
}

// Verify returns the content of a token. A bad token is a fault.Unauthorized that states the
// reason; if the issuer does not answer, the error is a fault.Unavailable.
func (v *Verifier) Verify(ctx context.Context, text string) (Token, error) {
	from, err := v.from(text)
	if err != nil {
		return Token{}, err
	}
	// Times are checked below, with their skew; the library checks everything else.
	signature := &signatures{issuer: from}
	verifier := oidc.NewVerifier(from.URL, signature, &oidc.Config{
		ClientID: from.Audience, SkipExpiryCheck: true, SupportedSigningAlgs: names(algorithms), Now: v.now,
	})
	verified, err := verifier.Verify(ctx, text)
	switch {
	case errors.Is(signature.err, errUnavailable):
		return Token{}, unavailable("The issuer of the token does not answer. Try again.", signature.err)
	case err != nil && ctx.Err() != nil:
		return Token{}, context.Cause(ctx)
	case err != nil:
		return Token{}, refused(errors.Join(err, signature.err), from)
	}
	token := Token{Issuer: from.Issuer, Subject: verified.Subject}
	if token.Claims, err = v.claims(verified); err != nil {
		return Token{}, err
	}
	return token, nil
}

// from returns the issuer that a token names, before any other part of the token is trusted.
func (v *Verifier) from(text string) (*issuer, error) {
	parts := strings.Split(text, ".")
	if len(text) > longestToken || len(parts) != 3 {
		return nil, notAToken()
	}
	var said struct {
		Issuer string `json:"iss"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &said) != nil {
		return nil, notAToken()
	}
	from := v.issuers[said.Issuer]
	if from == nil {
		return nil, fault.New(fault.Unauthorized, "The bearer token is of an issuer (iss) that this server does not take tokens of.")
	}
	return from, nil
}

func notAToken() error {
	return fault.New(fault.Unauthorized, "The bearer token is neither a JSON Web Token nor an API key.")
}

// refused states why a token is not valid, in words that help its owner and reveal no secret.
func refused(err error, from *issuer) error {
	switch {
	case errors.Is(err, errUnknownKey):
		return fault.New(fault.Unauthorized, "The bearer token is signed with a key (kid) that its issuer does not publish.")
	case strings.Contains(err.Error(), "expected audience"):
		return fault.New(fault.Unauthorized, "The bearer token is meant for another audience (aud) than %s.", from.Audience)
	case strings.Contains(err.Error(), "algorithm"):
		return fault.New(fault.Unauthorized, "The bearer token is signed with an algorithm (alg) that is not accepted.")
	default:
		return fault.New(fault.Unauthorized, "The bearer token is not valid.")
	}
}

// signatures is an oidc.KeySet that remembers its error, because the library's error does not
// wrap it.
type signatures struct {
	*issuer

	err error
}

// VerifySignature implements oidc.KeySet.
func (s *signatures) VerifySignature(ctx context.Context, text string) (payload []byte, err error) {
	payload, s.err = s.verify(ctx, text)
	return payload, s.err
}

func (i *issuer) verify(ctx context.Context, text string) ([]byte, error) {
	signed, err := jose.ParseSigned(text, algorithms)
	if err != nil {
		return nil, err
	}
	// The library has refused tokens with no signature or with several.
	header := signed.Signatures[0].Header
	candidates, err := i.find(ctx, header.KeyID)
	if err != nil {
		return nil, err
	}
	if payload, ok := openWith(signed, candidates); ok {
		return payload, nil
	}
	// The issuer may have put a new key in the place of a key with this id, or without an id.
	if err := i.refresh(ctx); err != nil {
		return nil, err
	}
	candidates, _ = i.cachedKeys(header.KeyID)
	if payload, ok := openWith(signed, candidates); ok {
		return payload, nil
	}
	return nil, errors.New("the signature is not of a key of the issuer")
}

// openWith returns the content of a token that one of the keys has signed.
func openWith(signed *jose.JSONWebSignature, candidates []jose.JSONWebKey) (payload []byte, ok bool) {
	algorithm := signed.Signatures[0].Header.Algorithm
	for _, key := range candidates {
		if key.Algorithm != "" && key.Algorithm != algorithm {
			continue
		}
		if payload, err := signed.Verify(&key); err == nil {
			return payload, true
		}
	}
	return nil, false
}

// claims reads a token's claims, and checks its times.
func (v *Verifier) claims(verified *oidc.IDToken) (map[string]any, error) {
	var raw json.RawMessage
	if err := verified.Claims(&raw); err != nil {
		return nil, notAToken()
	}
	claims := map[string]any{}
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	if err := decoder.Decode(&claims); err != nil {
		return nil, notAToken()
	}
	now := v.now()
	expires, ok := timeOf(claims["exp"])
	if !ok || !now.Before(expires.Add(skew)) {
		return nil, fault.New(fault.Unauthorized, "The bearer token has expired (exp).")
	}
	for _, name := range []string{"nbf", "iat"} {
		if at, ok := timeOf(claims[name]); ok && now.Add(skew).Before(at) {
			return nil, fault.New(fault.Unauthorized, "The bearer token is not valid yet (%s).", name)
		}
	}
	return claims, nil
}

// timeOf reads a claim that is a time, in seconds since 1970.
func timeOf(claim any) (time.Time, bool) {
	number, ok := claim.(json.Number)
	if !ok {
		return time.Time{}, false
	}
	seconds, err := number.Float64()
	return time.UnixMicro(int64(seconds * 1e6)).UTC(), err == nil
}

func names(algorithms []jose.SignatureAlgorithm) []string {
	list := make([]string, len(algorithms))
	for i, algorithm := range algorithms {
		list[i] = string(algorithm)
	}
	return list
}
