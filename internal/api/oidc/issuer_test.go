package oidc_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/api/oidc"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const audience = "https://slipway.test"

// issuer is an OpenID Connect issuer with real keys.
type issuer struct {
	*httptest.Server

	mu        sync.Mutex
	published []jose.JSONWebKey
	// broken answers all requests with 500.
	broken bool
	// named is the issuer that the discovery document names; its own address if it is empty.
	named string
	// authorization is the address at which the document says that people sign in; "" if it says
	// nothing.
	authorization string
	// token answers requests for tokens; moved is where requests for keys are led to, if not "".
	token http.Handler
	moved string
	// asked counts the requests for keys.
	asked int
	// hold, if it is not nil, makes requests wait until it is closed; a waiting request sends
	// to held.
	hold, held chan struct{}
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		named := i.URL
		if i.named != "" {
			named = i.named
		}
		i.answer(w, map[string]any{"issuer": named, "authorization_endpoint": i.authorization, "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256", "none", "HS256"}})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) { i.token.ServeHTTP(w, r) })
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		hold, held, moved := i.hold, i.held, i.moved
		i.mu.Unlock()
		if moved != "" {
			http.Redirect(w, r, moved, http.StatusFound)
			return
		}
		if hold != nil {
			held <- struct{}{}
			<-hold
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		i.asked++
		// Issuers publish kinds of keys that the server does not know.
		all := []any{map[string]string{"kty": "AKP", "kid": "future"}, map[string]string{"kty": "oct", "kid": "shared", "k": "c2VjcmV0"}}
		for _, key := range i.published {
			all = append(all, key)
		}
		i.answer(w, map[string]any{"keys": all})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// answer is called with the lock held.
func (i *issuer) answer(w http.ResponseWriter, body any) {
	if i.broken {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	json.NewEncoder(w).Encode(body)
}

func (i *issuer) change(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

func (i *issuer) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

// signer is a key of an issuer.
type signer struct {
	id        string
	algorithm jose.SignatureAlgorithm
	private   any
}

var keys = map[jose.SignatureAlgorithm]func() any{
	jose.RS256: func() any { key, _ := rsa.GenerateKey(rand.Reader, 2048); return key },
	jose.PS384: func() any { key, _ := rsa.GenerateKey(rand.Reader, 2048); return key },
	jose.ES256: func() any { key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader); return key },
	jose.ES512: func() any { key, _ := ecdsa.GenerateKey(elliptic.P521(), rand.Reader); return key },
}

// newKey makes a key, and publishes it beside the earlier keys.
func (i *issuer) newKey(id string, algorithm jose.SignatureAlgorithm) signer {
	s := signer{id, algorithm, keys[algorithm]()}
	i.change(func() { i.published = append(i.published, s.public()) })
	return s
}

func (s signer) public() jose.JSONWebKey {
	return jose.JSONWebKey{Key: s.private.(crypto.Signer).Public(), KeyID: s.id, Algorithm: string(s.algorithm), Use: "sig"}
}

// sign makes a token of claims.
func (s signer) sign(t *testing.T, claims map[string]any) string {
	t.Helper()
	made, err := jose.NewSigner(jose.SigningKey{Algorithm: s.algorithm, Key: jose.JSONWebKey{Key: s.private, KeyID: s.id}}, nil)
	check.Must(t, err)
	text, err := json.Marshal(claims)
	check.Must(t, err)
	signed, err := made.Sign(text)
	check.Must(t, err)
	token, err := signed.CompactSerialize()
	check.Must(t, err)
	return token
}

// unsigned makes a token without a signature, with the given header.
func unsigned(t *testing.T, header, claims map[string]any) string {
	t.Helper()
	encode := func(v any) string {
		text, err := json.Marshal(v)
		check.Must(t, err)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	return encode(header) + "." + encode(claims) + "."
}

// claims are the claims of a good token, with changes.
func (i *issuer) claims(now time.Time, changes map[string]any) map[string]any {
	claims := map[string]any{
		"iss": i.URL, "aud": audience, "sub": "subject", "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(), "repository_id": "7",
	}
	for name, value := range changes {
		if value == nil {
			delete(claims, name)
		} else {
			claims[name] = value
		}
	}
	return claims
}

// verifier trusts an issuer, as an issuer of programs.
func verifier(t *testing.T, clock *fixtures.Clock, issuers ...*issuer) *oidc.Verifier {
	t.Helper()
	var configured []oidc.Issuer
	for _, i := range issuers {
		configured = append(configured, oidc.Issuer{URL: i.URL, Audience: audience})
	}
	return oidc.NewVerifier(configured, client(t), clock.Now)
}

func client(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
