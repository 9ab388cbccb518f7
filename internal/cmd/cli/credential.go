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

	"github.com/spf13/cobra"
	"github.com/zalando/go-keyring"
	"golang.org/x/oauth2"

	"github.com/slipway-run/slipway/internal/api/oidc"
	"github.com/slipway-run/slipway/internal/api/signin"
	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/exit"
)

const (
	// keyringService names the entries in the keyring; entry returns the entry's user.
	keyringService = "slipway"
	// noKeyring is the variable that keeps credentials out of the keyring.
	noKeyring = "SLIPWAY_NO_KEYRING"
	// renewBefore is how long before its end a session is renewed.
	renewBefore = time.Minute
	// issuerLimit is how long an issuer may take for one answer.
	issuerLimit = 30 * time.Second
)

// issuers is the client for requests to issuers. It follows no redirect, which could lead the
// secrets of a request to any address.
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

// errNoKeyring says that the user wants no keyring.
var errNoKeyring = errors.New("$" + noKeyring + " is set")

// entry is the user of a context's entry in the keyring. A file of contexts in another directory
// may have the same name for another server.
func entry(name, server string) string { return name + " " + server }

// read returns the credential of the context with the given name.
func (k savedServer) read(name string) (credential, error) {
	if k.Login.Credential != nil {
		return *k.Login.Credential, nil
	}
	text, err := keyring.Get(keyringService, entry(name, k.URL))
	if err != nil {
		return credential{}, exit.Refused(fmt.Errorf("the keyring has no sign-in for the context %s (%w); run: slipway login --context %s", name, err, name))
	}
	var c credential
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return credential{}, fmt.Errorf("read the sign-in of the context %s from the keyring: %w", name, err)
	}
	return c, nil
}

// store puts the credential of a context into the keyring, or into the context where that does not
// work, for example on a server without a desktop; refused is why. The caller writes the contexts.
func (k savedServer) store(name string, c credential) (refused error) {
	refused = errNoKeyring
	if os.Getenv(noKeyring) == "" {
		text, err := json.Marshal(c)
		if err == nil {
			err = keyring.Set(keyringService, entry(name, k.URL), string(text))
		}
		if err == nil {
			k.Login.Credential = nil
			return nil
		}
		refused = err
		// This removes an older credential; often there is no keyring at all.
		_ = keyring.Delete(keyringService, entry(name, k.URL))
	}
	k.Login.Credential = &c
	return refused
}

// forget removes the credential of a context from the keyring.
func (k savedServer) forget(name string) error {
	inFile := k.Login.Credential != nil
	if inFile && os.Getenv(noKeyring) != "" {
		return nil
	}
	err := keyring.Delete(keyringService, entry(name, k.URL))
	if err == nil || inFile || errors.Is(err, keyring.ErrNotFound) {
		return nil
	}
	return fmt.Errorf("remove the sign-in of the context %s from the keyring: %w", name, err)
}

// sayKept tells the user that a session is in the file of the contexts, and why.
func sayKept(w io.Writer, refused error) error {
	file, err := contextsFile()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "the keyring does not take the session (%v): it is kept in %s, which only you can read\n", refused, file)
	return err
}

// isFresh reports whether the session can still be used.
func (c credential) isFresh() bool { return time.Now().Add(renewBefore).Before(c.Expires) }

// signedIn returns the token of a context's session, and renews a session that is over. What the
// user should know goes to notes.
func signedIn(ctx context.Context, name string, saved savedServer, notes io.Writer) (token string, err error) {
	c, err := saved.read(name)
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
		if now.URL != saved.URL || now.Tenant != saved.Tenant {
			return fmt.Errorf("the context %s has been changed; run the command again", name)
		}
		c, err := now.read(name)
		if err != nil {
			return err
		}
		if !c.isFresh() {
			if c, err = renew(ctx, all, name, c, notes); err != nil {
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
func renew(ctx context.Context, all *contexts, name string, c credential, notes io.Writer) (credential, error) {
	saved := all.Contexts[name]
	over := func(why error) error {
		return exit.Refused(fmt.Errorf("the sign-in of %s at %s is over (%w); run: slipway login --context %s", saved.Login.User, saved.URL, why, name))
	}
	if c.Refresh == "" {
		return c, over(errors.New("the issuer gave nothing to renew it with"))
	}
	at, ctx, err := discover(ctx, saved.URL, saved.Login.Issuer)
	if err != nil {
		return c, err
	}
	answer, err := at.Config(saved.Login.ClientID, "").TokenSource(ctx, &oauth2.Token{RefreshToken: c.Refresh}).Token()
	if oidc.IsRefusal(err) {
		return c, over(errors.New("the issuer does not renew it"))
	}
	if err != nil {
		return c, fmt.Errorf("renew the sign-in at %s: %w", saved.Login.Issuer, oidc.Answered(err))
	}
	// The issuer's new token is kept first: the server may not answer.
	if err := storeLogin(all, name, credential{Refresh: answer.RefreshToken}, notes); err != nil {
		return c, err
	}
	if idToken(answer) == "" {
		return c, over(errors.New("the issuer renews it without an ID token"))
	}
	_, c, err = exchange(ctx, saved.URL, saved.Tenant, answer)
	if err != nil {
		return c, err
	}
	return c, storeLogin(all, name, c, notes)
}

// storeLogin keeps the credential of a context that has a login.
func storeLogin(all *contexts, name string, c credential, notes io.Writer) error {
	saved := all.Contexts[name]
	before := saved.Login.Credential
	refused := saved.store(name, c)
	if err := all.write(); err != nil || refused == nil || before != nil {
		return err
	}
	return sayKept(notes, refused)
}

// discover reads the addresses of the issuer that a server names. The context that it returns
// makes the library send requests with a limit of time.
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

// ended is a sign-in that no context has any more.
type ended struct {
	savedServer
	credential
	// err is why its credential could not be read, or not be removed from the keyring.
	err error
}

// release takes the sign-in of a context out of the keyring; without a sign-in it returns nil. The
// caller changes the context, writes the contexts, and then calls end.
func (c contexts) release(name string) *ended {
	saved := c.Contexts[name]
	if saved.Login == nil {
		return nil
	}
	secrets, err := saved.read(name)
	return &ended{saved, secrets, errors.Join(err, saved.forget(name))}
}

// end ends the session at the server, and the refresh token at the issuer if the issuer can do so,
// unless next is a sign-in of the same client: some issuers would end that, too.
func (e *ended) end(ctx context.Context, next *login) error {
	if e == nil {
		return nil
	}
	errs := []error{e.err}
	if e.Token != "" {
		err := client.New(client.Server{URL: e.URL, Bearer: e.Token}).Call(ctx, http.MethodDelete, signin.TokenPath, nil, nil)
		if err != nil {
			errs = append(errs, fmt.Errorf("end the session: %w", err))
		}
	}
	if e.Refresh == "" || next != nil && next.Issuer == e.Login.Issuer && next.ClientID == e.Login.ClientID {
		return errors.Join(errs...)
	}
	at, ctx, err := discover(ctx, e.URL, e.Login.Issuer)
	if err != nil || at.Revocation == "" {
		return errors.Join(append(errs, err)...)
	}
	form := url.Values{"token": {e.Refresh}, "token_type_hint": {"refresh_token"}, "client_id": {e.Login.ClientID}}
	return errors.Join(append(errs, post(ctx, at.Revocation, form))...)
}

// endEarlier ends the sign-in that a command has taken from a context. The command has done its
// work even if that fails.
func (e *ended) endEarlier(cmd *cobra.Command, next *login) {
	if err := e.end(cmd.Context(), next); err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "the sign-in at %s is forgotten here, but: %v\n", e.URL, err)
	}
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
