package oidc_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/slipway-run/slipway/internal/api/oidc"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestAttackAnIssuerLeadsElsewhere has an issuer that redirects the request with the code of a
// person to a third party, and a request for keys to an address without encryption.
func TestAttackAnIssuerLeadsElsewhere(t *testing.T) {
	t.Parallel()
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server got %s %s", r.Method, r.URL)
	}))
	t.Cleanup(thief.Close)
	i, clock := newIssuer(t), fixtures.NewClock()
	key := i.newKey("one", jose.ES256)
	i.token = http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect)
	people := oidc.NewClient(oidc.Issuer{URL: i.URL, Audience: "people", Members: true}, client(t), clock.Now)
	if got, err := people.Finish(t.Context(), "https://slipway.test/back", "secret", oidc.PendingSignIn{State: "1", Nonce: "2", Proof: "3"}); err == nil {
		t.Errorf("got %+v", got)
	}
	for address, good := range map[string]bool{i.URL + "/keys": true, strings.Replace(thief.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1): false} {
		other := newIssuer(t)
		other.change(func() { other.moved, other.published = address, i.published })
		token := key.sign(t, other.claims(clock.Now(), nil))
		if good {
			wantGood(t, verifier(t, clock, other), "keys at "+address, token)
		} else {
			wantBad(t, verifier(t, clock, other), "keys at "+address, token, fault.Unavailable, "does not answer")
		}
	}
}

// TestAttackAnIssuerNamesThisMachine has an issuer that is asked by https, and that names an
// address of this machine to which secrets would be sent.
func TestAttackAnIssuerNamesThisMachine(t *testing.T) {
	t.Parallel()
	var address string
	mux := http.NewServeMux()
	i := httptest.NewTLSServer(mux)
	t.Cleanup(i.Close)
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		check.Must(t, json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "token_endpoint": address}))
	})
	for _, address = range []string{i.URL + "/token", "http://127.0.0.1/token", "http://localhost", "http://slipway.test/token", "urn:x"} {
		at, err := oidc.Discover(t.Context(), i.Client(), i.URL)
		check.Must(t, err)
		if err := at.CheckPrivate(); (err == nil) != (address == i.URL+"/token") {
			t.Errorf("%s: got %v", address, err)
		}
	}
}

// TestWhatAnIssuerAnswers tells a code that the issuer refuses from an issuer that does not work.
// The log learns the cause, and no body, which may have secrets.
func TestWhatAnIssuerAnswers(t *testing.T) {
	t.Parallel()
	i, clock := newIssuer(t), fixtures.NewClock()
	i.newKey("one", jose.ES256)
	people := oidc.NewClient(oidc.Issuer{URL: i.URL, Audience: "people", Members: true}, client(t), clock.Now)
	for body, c := range map[string]struct {
		status int
		kind   fault.Kind
		words  string
	}{
		`{"error":"invalid_grant","error_description":"secret"}`:  {http.StatusBadRequest, fault.Unauthorized, "does not accept"},
		`{"error":"invalid_client","error_description":"secret"}`: {http.StatusUnauthorized, fault.Unavailable, `401 Unauthorized "invalid_client"`},
		`secret`: {http.StatusNotFound, fault.Unavailable, `404 Not Found ""`},
		`{"error":"server_error","error_description":"secret"}`: {http.StatusInternalServerError, fault.Unavailable, `500 Internal Server Error "server_error"`},
	} {
		i.token = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(body))
		})
		_, err := people.Finish(t.Context(), "https://slipway.test/back", "code", oidc.PendingSignIn{State: "1", Nonce: "2", Proof: "3"})
		if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.words) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", body, err)
		}
	}
}
