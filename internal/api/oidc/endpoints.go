package oidc

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Endpoints are the addresses that an issuer publishes.
type Endpoints struct {
	oauth2.Endpoint

	issuer string
	Keys   string
	// Revocation ends a token (RFC 7009); "" if the issuer cannot do so.
	Revocation string
	// Lasting are the scopes with which the issuer gives refresh tokens. Some issuers know no such
	// scopes: they always give refresh tokens.
	Lasting []string
}

// Discover reads the addresses of an issuer from its document. Before a secret is sent to one of
// them, CheckPrivate must permit it: issuers of programs publish addresses that lead nowhere.
func Discover(ctx context.Context, client *http.Client, issuer string) (Endpoints, error) {
	if err := CheckPrivate(issuer); err != nil {
		return Endpoints{}, err
	}
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, client), issuer)
	if err != nil {
		return Endpoints{}, err
	}
	var document struct {
		Keys       string   `json:"jwks_uri"`
		Revocation string   `json:"revocation_endpoint"`
		Scopes     []string `json:"scopes_supported"`
	}
	if err := provider.Claims(&document); err != nil {
		return Endpoints{}, err
	}
	at := Endpoints{Endpoint: provider.Endpoint(), issuer: issuer, Keys: document.Keys, Revocation: document.Revocation}
	if slices.Contains(document.Scopes, oidc.ScopeOfflineAccess) {
		at.Lasting = []string{oidc.ScopeOfflineAccess}
	}
	// A public client names itself in the body. The library would otherwise try a header first,
	// and a code is good for one try only.
	at.AuthStyle = oauth2.AuthStyleInParams
	return at, nil
}

// CheckPrivate refuses the issuer if others could change a request to one of its addresses on the
// way. An issuer that is asked by https may not name addresses of this machine: the server that
// names the issuer could otherwise make a browser or the command line send forms there.
func (e Endpoints) CheckPrivate() error {
	for _, address := range []string{e.AuthURL, e.TokenURL, e.DeviceAuthURL, e.Revocation} {
		if address == "" {
			continue
		}
		if err := CheckPrivate(address); err != nil {
			return err
		}
		if isEncrypted(e.issuer) && !isEncrypted(address) {
			return fmt.Errorf("%s must be asked by https, as its issuer %s is", address, e.issuer)
		}
	}
	return nil
}

func isEncrypted(address string) bool { return strings.HasPrefix(address, "https://") }

// CheckLocal refuses an issuer without encryption, unless the server that names the issuer is on
// this machine, too: a server elsewhere may not choose what is asked here.
func CheckLocal(server, issuer string) error {
	if isEncrypted(issuer) || !isEncrypted(server) && CheckPrivate(server) == nil {
		return nil
	}
	return fmt.Errorf("the server %s names the issuer %s, which must be asked by https", server, issuer)
}

// Config is a public client of the issuer. The issuer sends browsers back to the address redirect.
func (e Endpoints) Config(clientID, redirect string) *oauth2.Config {
	return &oauth2.Config{ClientID: clientID, Endpoint: e.Endpoint, RedirectURL: redirect, Scopes: Scopes}
}

// CheckPrivate refuses an address if others could change a request to it on the way.
func CheckPrivate(address string) error {
	parsed, err := url.Parse(address)
	if err != nil || !isPrivate(parsed) {
		return fmt.Errorf("%s must be asked by https", address)
	}
	return nil
}
