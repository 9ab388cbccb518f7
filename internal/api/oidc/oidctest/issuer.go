// Package oidctest is an OpenID Connect issuer for tests: a real HTTP server with a discovery
// document and a set of keys, which signs tokens with real keys that it can change. One person
// signs in there (signin.go), in a browser or with the code of a device.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Audience is the audience of the tokens.
const Audience = "https://slipway.test"

// Issuer is an issuer.
type Issuer struct {
	*httptest.Server
	t *testing.T

	mu sync.Mutex
	// keys are all keys of the issuer, the newest last. The keys from the index first on are
	// published.
	keys  []*ecdsa.PrivateKey
	first int

	signIns
}

// New starts an issuer with one key.
func New(t *testing.T) *Issuer {
	t.Helper()
	i := &Issuer{t: t, signIns: newSignIns()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		i.answer(w, map[string]any{
			"issuer": i.URL, "scopes_supported": []string{"openid", "email", "profile", "offline_access"}, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
			"device_authorization_endpoint": i.URL + "/device", "revocation_endpoint": i.URL + "/revoke",
		})
	})
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.exchange)
	mux.HandleFunc("POST /device", i.device)
	mux.HandleFunc("POST /revoke", i.revoke)
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) { i.answer(w, i.published()) })
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	i.Rotate()
	return i
}

func (i *Issuer) answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(body); err != nil {
		i.t.Error(err)
	}
}

func (i *Issuer) published() jose.JSONWebKeySet {
	i.mu.Lock()
	defer i.mu.Unlock()
	var set jose.JSONWebKeySet
	for n := i.first; n < len(i.keys); n++ {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: i.keys[n].Public(), KeyID: strconv.Itoa(n), Algorithm: string(jose.ES256), Use: "sig"})
	}
	return set
}

// Rotate signs with a new key from now on, and publishes it beside the earlier keys.
func (i *Issuer) Rotate() {
	i.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = append(i.keys, key)
}

// Withdraw publishes the newest key alone from now on.
func (i *Issuer) Withdraw() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.first = len(i.keys) - 1
}

// Token is a bearer token that is valid for some minutes from a time on. The claims are added
// to the claims that every token has.
func (i *Issuer) Token(now time.Time, claims map[string]any) string {
	i.t.Helper()
	return "Bearer " + i.sign(now, "JWT", claims)
}

func (i *Issuer) sign(now time.Time, kind jose.ContentType, claims map[string]any) string {
	i.t.Helper()
	all := map[string]any{"iss": i.URL, "aud": Audience, "sub": "subject", "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix()}
	maps.Copy(all, claims)
	i.mu.Lock()
	newest := len(i.keys) - 1
	key := jose.JSONWebKey{Key: i.keys[newest], KeyID: strconv.Itoa(newest)}
	i.mu.Unlock()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{}).WithType(kind))
	if err != nil {
		i.t.Fatal(err)
	}
	text, err := json.Marshal(all)
	if err != nil {
		i.t.Fatal(err)
	}
	signed, err := signer.Sign(text)
	if err != nil {
		i.t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}
