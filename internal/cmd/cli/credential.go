package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/zalando/go-keyring"
	"golang.org/x/oauth2"

	"github.com/slipway-run/slipway/internal/api/oidc"
	"github.com/slipway-run/slipway/internal/api/signin"
	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/exit"
)

const (
	// keyringService names the entries in the keyring; the name of the context is the entry's user.
	keyringService = "slipway"
	// noKeyring is the variable that keeps credentials out of the keyring.
	noKeyring = "SLIPWAY_NO_KEYRING"
	// renewBefore is how long before its end a session is renewed.
	renewBefore = time.Minute
	// issuerLimit is how long an issuer may take for one answer.
	issuerLimit = 30 * time.Second
)

// issuers is the client for requests to issuers. It follows no redirect, which could lead the secrets
// of a request to any address.
var issuers = &http.Client{
	Timeout: issuerLimit, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// login is a sign-in that a context keeps.
type login struct {
	Issuer   string `json:"issuer"`
	ClientID string `json:"client_id"`
	User     string `json:"user"`
	// Credential is the credential if no keyring holds it.
	Credential *credential `json:"credential,omitempty"`
}

// credential holds the secrets of a sign-in.
type credential struct {
	// Token is the session at the server.
	Token   string    `json:"token"`
	Expires time.Time `json:"expires"`
	// Refresh is the issuer's token by which the session is renewed; "" if there is none.
	Refresh string `json:"refresh,omitempty"`
}

// read returns the credential of the context with the given name.
func (l *login) read(name string) (credential, error) {
	if l.Credential != nil {
		return *l.Credential, nil
	}
	text, err := keyring.Get(keyringService, name)
	if err != nil {
		return credential{}, exit.Refused(fmt.Errorf("the keyring has no sign-in for the context %s (%w); run: slipway login --context %s", name, err, name))
	}
	var c credential
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return credential{}, fmt.Errorf("read the sign-in of the context %s from the keyring: %w", name, err)
	}
	return c, nil
}

// keep puts the credential of a context into the keyring, or into the context where that does not
// work, for example on a server without a desktop. The caller writes the contexts.
func (l *login) keep(name string, c credential) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if os.Getenv(noKeyring) == "" && keyring.Set(keyringService, name, string(text)) == nil {
		l.Credential = nil
		return nil
	}
	l.Credential = &c
	return nil
}

// forget removes the credential of a context from the keyring.
func (l *login) forget(name string) error {
	if l.Credential != nil {
		return nil
	}
	if err := keyring.Delete(keyringService, name); err != nil && !errors.Is(err, keyring.ErrNotFound) {
		return fmt.Errorf("remove the sign-in of the context %s from the keyring: %w", name, err)
	}
	return nil
}

// isFresh reports whether the session can still be used.
func (c credential) isFresh() bool { return time.Now().Add(renewBefore).Before(c.Expires) }

// signedIn returns the token of a context's session, and renews a session that is over.
func signedIn(ctx context.Context, name string, found kept) (token string, err error) {
	c, err := found.Login.read(name)
	if err != nil || c.isFresh() {
		return c.Token, err
	}
	// Most issuers accept each refresh token once. The first command renews the session, and others
	// wait for it and find the session renewed.
	err = lockContexts(ctx, func(all *contexts) error {
		now := all.Contexts[name]
		if now.Login == nil {
			return nobody(name)
		}
		if now.URL != found.URL || now.Tenant != found.Tenant {
			return fmt.Errorf("the context %s has been changed; run the command again", name)
		}
		c, err := now.Login.read(name)
		if err != nil {
			return err
		}
		if !c.isFresh() {
			if c, err = renew(ctx, all, name, c); err != nil {
				return err
			}
		}
		token = c.Token
		return nil
	})
	if err != nil && ctx.Err() != nil {
		err = exit.ErrInterrupted
	}
	return token, err
}

// nobody says that a context has no credentials.
func nobody(name string) error {
	return exit.Refused(fmt.Errorf("nobody is signed in to the context %s; run: slipway login --context %s", name, name))
}

// renew asks the issuer for another token, exchanges it for a session, and keeps both.
func renew(ctx context.Context, all *contexts, name string, c credential) (credential, error) {
	found := all.Contexts[name]
	over := func(why error) error {
		return exit.Refused(fmt.Errorf("the sign-in of %s at %s is over (%w); run: slipway login --context %s", found.Login.User, found.URL, why, name))
	}
	if c.Refresh == "" {
		return c, over(errors.New("the issuer gave nothing to renew it with"))
	}
	at, ctx, err := discover(ctx, found.URL, found.Login.Issuer)
	if err != nil {
		return c, err
	}
	answer, err := at.Config(found.Login.ClientID, "").TokenSource(ctx, &oauth2.Token{RefreshToken: c.Refresh}).Token()
	if oidc.IsRefusal(err) {
		return c, over(errors.New("the issuer does not renew it"))
	}
	if err != nil {
		return c, fmt.Errorf("renew the sign-in at %s: %w", found.Login.Issuer, oidc.Answered(err))
	}
	// The issuer's new token is kept first: the server may not answer.
	if err := keepLogin(all, name, credential{Refresh: answer.RefreshToken}); err != nil {
		return c, err
	}
	if idToken(answer) == "" {
		return c, over(errors.New("the issuer renews it without an ID token"))
	}
	_, c, err = exchange(ctx, found.URL, found.Tenant, answer)
	if err != nil {
		return c, err
	}
	return c, keepLogin(all, name, c)
}

// keepLogin keeps the credential of a context that has a login.
func keepLogin(all *contexts, name string, c credential) error {
	if err := all.Contexts[name].Login.keep(name, c); err != nil {
		return err
	}
	return all.write()
}

// discover reads the addresses of the issuer that a server names. The context that it returns makes the library send
// requests with a limit of time.
func discover(ctx context.Context, server, issuer string) (oidc.Endpoints, context.Context, error) {
	if err := oidc.CheckLocal(server, issuer); err != nil {
		return oidc.Endpoints{}, ctx, err
	}
	at, err := oidc.Discover(ctx, issuers, issuer)
	if err == nil {
		err = at.CheckPrivate()
	}
	if err != nil {
		return at, ctx, fmt.Errorf("ask the issuer %s: %w", issuer, err)
	}
	return at, context.WithValue(ctx, oauth2.HTTPClient, issuers), nil
}

// exchange exchanges the issuer's answer for a session at a server.
func exchange(ctx context.Context, server, workspace string, answer *oauth2.Token) (granted signin.Granted, c credential, err error) {
	text := idToken(answer)
	if text == "" {
		return granted, c, errors.New("the issuer sends no ID token: the client must have the scope openid")
	}
	wanted := signin.Wanted{Token: text, Workspace: workspace}
	if err := client.New(client.Server{URL: server}).Call(ctx, http.MethodPost, signin.TokenPath, wanted, &granted); err != nil {
		return granted, c, err
	}
	expires, err := time.Parse(time.RFC3339, granted.ExpiresAt)
	if err != nil {
		return granted, c, fmt.Errorf("read the end of the session: %w", err)
	}
	return granted, credential{Token: granted.Token, Expires: expires, Refresh: answer.RefreshToken}, nil
}

func idToken(answer *oauth2.Token) string {
	text, _ := answer.Extra("id_token").(string)
	return text
}

// end ends the session at the server, and the refresh token at the issuer if the issuer can do
// so.
func (l *login) end(ctx context.Context, server string, c credential) error {
	var errs []error
	if c.Token != "" {
		err := client.New(client.Server{URL: server, Bearer: c.Token}).Call(ctx, http.MethodDelete, signin.TokenPath, nil, nil)
		if err != nil {
			errs = append(errs, fmt.Errorf("end the session: %w", err))
		}
	}
	if c.Refresh == "" {
		return errors.Join(errs...)
	}
	at, ctx, err := discover(ctx, server, l.Issuer)
	if err != nil || at.Revocation == "" {
		return errors.Join(append(errs, err)...)
	}
	form := url.Values{"token": {c.Refresh}, "token_type_hint": {"refresh_token"}, "client_id": {l.ClientID}}
	return errors.Join(append(errs, post(ctx, at.Revocation, form))...)
}

// post sends a form to an issuer.
func post(ctx context.Context, address string, form url.Values) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := issuers.Do(request)
	if err != nil {
		return fmt.Errorf("revoke the sign-in: %w", err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20)); err != nil {
		return fmt.Errorf("revoke the sign-in: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("revoke the sign-in: the issuer answers %s", response.Status)
	}
	return nil
}
