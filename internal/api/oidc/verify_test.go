package oidc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/oidc"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func wantGood(t *testing.T, v *oidc.Verifier, what, token string) {
	t.Helper()
	if got, err := v.Verify(t.Context(), token); err != nil || got.Subject != "subject" || got.Claims["repository_id"] != "7" {
		t.Errorf("%s: got %+v (%v)", what, got, err)
	}
}

func wantBad(t *testing.T, v *oidc.Verifier, what, token string, kind fault.Kind, words string) {
	t.Helper()
	if got, err := v.Verify(t.Context(), token); !fault.Is(err, kind) || !strings.Contains(err.Error(), words) || got.Subject != "" {
		t.Errorf("%s: got %+v (%v), want a fault of kind %s with %q", what, got, err, kind, words)
	}
}

func TestEveryAsymmetricAlgorithm(t *testing.T) {
	t.Parallel()
	i, clock := newIssuer(t), fixtures.NewClock()
	var signers []signer
	for algorithm := range keys {
		signers = append(signers, i.newKey(string(algorithm), algorithm))
	}
	v := verifier(t, clock, i)
	for _, s := range signers {
		wantGood(t, v, s.id, s.sign(t, i.claims(clock.Now(), nil)))
	}
	if n := i.count(); n != 1 {
		t.Errorf("the issuer was asked %d times, want once", n)
	}
}

// TestClaims changes one claim after the other.
func TestClaims(t *testing.T) {
	t.Parallel()
	i, other, clock := newIssuer(t), newIssuer(t), fixtures.NewClock()
	key := i.newKey("one", jose.ES256)
	other.newKey("another", jose.ES256)
	stranger := newIssuer(t)
	v := verifier(t, clock, i, other)
	now := clock.Now()
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	type changes = map[string]any
	for name, c := range map[string]struct {
		claims changes
		words  string
	}{
		"nothing":                          {nil, ""},
		"several audiences":                {changes{"aud": []string{"other", audience}}, ""},
		"another audience":                 {changes{"aud": "https://other.test"}, "(aud)"},
		"an audience that begins alike":    {changes{"aud": audience + "/x"}, "(aud)"},
		"no audience":                      {changes{"aud": nil}, "(aud)"},
		"another issuer of ours":           {changes{"iss": other.URL}, "does not publish"},
		"an unknown issuer":                {changes{"iss": stranger.URL}, "(iss)"},
		"an issuer with a slash":           {changes{"iss": i.URL + "/"}, "(iss)"},
		"no issuer":                        {changes{"iss": nil}, "(iss)"},
		"expired within the skew":          {changes{"exp": at(-59 * time.Second)}, ""},
		"expired":                          {changes{"exp": at(-time.Minute)}, "expired (exp)"},
		"no expiry":                        {changes{"exp": nil}, "expired (exp)"},
		"an expiry that is text":           {changes{"exp": "never"}, "not valid"},
		"valid in a moment":                {changes{"nbf": at(time.Minute)}, ""},
		"not yet valid":                    {changes{"nbf": at(time.Minute + time.Second)}, "not valid yet (nbf)"},
		"issued in the future":             {changes{"iat": at(time.Hour), "nbf": nil}, "not valid yet (iat)"},
		"neither of the times it may lack": {changes{"iat": nil, "nbf": nil}, ""},
	} {
		token := key.sign(t, i.claims(now, c.claims))
		if c.words == "" {
			wantGood(t, v, name, token)
		} else {
			wantBad(t, v, name, token, fault.Unauthorized, c.words)
		}
	}
	if n := stranger.count(); n > 0 {
		t.Errorf("an issuer that is not configured was asked %d times", n)
	}
}

// TestAnIssuerAtWhichNobodySignsIn verifies a token of a Kubernetes service account: such an issuer
// publishes an address of another kind for people.
func TestAnIssuerAtWhichNobodySignsIn(t *testing.T) {
	t.Parallel()
	i, clock := newIssuer(t), fixtures.NewClock()
	i.authorization = "urn:kubernetes:programmatic_authorization"
	key := i.newKey("one", jose.RS256)
	wantGood(t, verifier(t, clock, i), "a program's token", key.sign(t, i.claims(clock.Now(), nil)))
	people := oidc.NewClient(oidc.Issuer{URL: i.URL, Audience: "people", Members: true}, client(t), clock.Now)
	if address, _, err := people.Start(t.Context(), "https://slipway.test/back"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a person is sent to %q (%v)", address, err)
	}
}

// TestForgeries sends tokens that no trusted issuer has signed.
func TestForgeries(t *testing.T) {
	t.Parallel()
	i, clock := newIssuer(t), fixtures.NewClock()
	good := i.newKey("one", jose.RS256)
	curve := i.newKey("two", jose.ES256)
	v := verifier(t, clock, i)
	claims := i.claims(clock.Now(), nil)
	token := good.sign(t, claims)
	wantGood(t, v, "the original", token)
	parts := strings.Split(token, ".")
	admin := strings.Split(unsigned(t, nil, i.claims(clock.Now(), map[string]any{"repository_id": "8"})), ".")[1]
	hmac, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: []byte(strings.Repeat("secret", 8)), KeyID: "shared"}}, nil)
	check.Must(t, err)
	signed, err := hmac.Sign([]byte(`{"iss":"` + i.URL + `"}`))
	check.Must(t, err)
	shared, err := signed.CompactSerialize()
	check.Must(t, err)
	stranger := signer{"one", jose.RS256, keys[jose.RS256]()}
	mixed := signer{"two", jose.RS256, good.private}
	padded := signer{"one", jose.PS384, good.private}
	for name, c := range map[string]struct{ token, words string }{
		"none":                        {unsigned(t, map[string]any{"alg": "none"}, claims), "(alg)"},
		"None":                        {unsigned(t, map[string]any{"alg": "None"}, claims), "(alg)"},
		"no algorithm":                {unsigned(t, map[string]any{"kid": "one"}, claims), "(alg)"},
		"a shared secret":             {shared, "(alg)"},
		"no signature":                {unsigned(t, map[string]any{"alg": "RS256", "kid": "one"}, claims), "not valid"},
		"another key of that name":    {stranger.sign(t, claims), "not valid"},
		"a key for another algorithm": {mixed.sign(t, claims), "not valid"},
		"another algorithm of a key":  {padded.sign(t, claims), "not valid"},
		"other claims":                {parts[0] + "." + admin + "." + parts[2], "not valid"},
		"another signature":           {parts[0] + "." + parts[1] + "." + strings.Split(curve.sign(t, claims), ".")[2], "not valid"},
		"cut":                         {parts[0] + "." + parts[1], "neither"},
		"five parts":                  {token + ".a.b", "neither"},
		"not base64":                  {"a.*.c", "neither"},
		"not JSON":                    {"e30.YQ.c", "neither"},
		"empty":                       {"", "neither"},
		"endless":                     {parts[0] + "." + strings.Repeat("A", 20_000) + "." + parts[2], "neither"},
	} {
		wantBad(t, v, name, c.token, fault.Unauthorized, c.words)
	}
}

// TestAnEmbeddedKeyIsNotBelieved signs with a key that the token itself contains.
func TestAnEmbeddedKeyIsNotBelieved(t *testing.T) {
	t.Parallel()
	i, clock := newIssuer(t), fixtures.NewClock()
	i.newKey("one", jose.ES256)
	made, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: keys[jose.ES256]()}, &jose.SignerOptions{EmbedJWK: true})
	check.Must(t, err)
	signed, err := made.Sign([]byte(fmt.Sprintf(`{"iss":%q,"aud":%q,"exp":4000000000}`, i.URL, audience)))
	check.Must(t, err)
	token, err := signed.CompactSerialize()
	check.Must(t, err)
	wantBad(t, verifier(t, clock, i), "embedded", token, fault.Unauthorized, "not valid")
}

func TestATokenThatNamesNoKey(t *testing.T) {
	t.Parallel()
	i, clock := newIssuer(t), fixtures.NewClock()
	i.newKey("one", jose.ES256)
	second := i.newKey("two", jose.ES256)
	second.id = ""
	wantGood(t, verifier(t, clock, i), "any key", second.sign(t, i.claims(clock.Now(), nil)))
}

func TestRotation(t *testing.T) {
	t.Parallel()
	i, clock := newIssuer(t), fixtures.NewClock()
	first := i.newKey("one", jose.RS256)
	v := verifier(t, clock, i)
	token := func(s signer) string { return s.sign(t, i.claims(clock.Now(), nil)) }
	wantGood(t, v, "the first key", token(first))
	second := i.newKey("two", jose.ES256)
	wantBad(t, v, "a key of a moment ago", token(second), fault.Unauthorized, "(kid)")
	clock.Pass(30 * time.Second)
	wantGood(t, v, "a new key", token(second))
	wantGood(t, v, "the first key beside it", token(first))
	if n := i.count(); n != 2 {
		t.Errorf("the issuer was asked %d times, want 2", n)
	}
	i.change(func() { i.published = i.published[1:] })
	clock.Pass(time.Hour - time.Second)
	wantGood(t, v, "a key that was withdrawn, not yet noticed", token(first))
	clock.Pass(time.Second)
	wantBad(t, v, "a key that was withdrawn", token(first), fault.Unauthorized, "(kid)")
	wantGood(t, v, "the second key alone", token(second))
	if n := i.count(); n != 3 {
		t.Errorf("the issuer was asked %d times, want 3", n)
	}
}

// TestAKeyInThePlaceOfAnother has an issuer replace a key by a key with the same id, and without an
// id, as an issuer does that makes its keys again when it starts.
func TestAKeyInThePlaceOfAnother(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"one", ""} {
		i, clock := newIssuer(t), fixtures.NewClock()
		first := i.newKey(id, jose.ES256)
		v := verifier(t, clock, i)
		token := func(s signer) string { return s.sign(t, i.claims(clock.Now(), nil)) }
		wantGood(t, v, "the first key", token(first))
		i.change(func() { i.published = nil })
		second := i.newKey(id, jose.ES256)
		clock.Pass(30 * time.Second)
		wantGood(t, v, "the second key", token(second))
		wantBad(t, v, "the first key", token(first), fault.Unauthorized, "not valid")
		if n := i.count(); n != 2 {
			t.Errorf("the issuer was asked %d times, want 2", n)
		}
	}
}

// TestAStormOfUnknownKeys sends many tokens with invented keys at once: the issuer gets only a
// few requests.
func TestAStormOfUnknownKeys(t *testing.T) {
	t.Parallel()
	i, clock := newIssuer(t), fixtures.NewClock()
	good := i.newKey("one", jose.ES256)
	v := verifier(t, clock, i)
	private := keys[jose.ES256]()
	storm := func() {
		t.Helper()
		var requests sync.WaitGroup
		for n := range 50 {
			requests.Go(func() {
				invented := signer{fmt.Sprint("invented-", n), jose.ES256, private}
				wantBad(t, v, "invented", invented.sign(t, i.claims(clock.Now(), nil)), fault.Unauthorized, "(kid)")
			})
		}
		requests.Wait()
	}
	storm()
	wantGood(t, v, "meanwhile", good.sign(t, i.claims(clock.Now(), nil)))
	clock.Pass(29 * time.Second)
	storm()
	if n := i.count(); n != 1 {
		t.Errorf("the issuer was asked %d times, want once", n)
	}
	clock.Pass(time.Second)
	storm()
	if n := i.count(); n != 2 {
		t.Errorf("the issuer was asked %d times, want once more", n)
	}
}

func TestAnIssuerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	i, clock := newIssuer(t), fixtures.NewClock()
	key := i.newKey("one", jose.ES256)
	v := verifier(t, clock, i)
	i.change(func() { i.broken = true })
	token := func() string { return key.sign(t, i.claims(clock.Now(), nil)) }
	wantBad(t, v, "never answered", token(), fault.Unavailable, "does not answer")
	i.change(func() { i.broken = false })
	wantBad(t, v, "asked a moment ago", token(), fault.Unavailable, "does not answer")
	clock.Pass(30 * time.Second)
	wantGood(t, v, "back", token())
	i.change(func() { i.broken = true })
	clock.Pass(24*time.Hour - time.Second)
	wantGood(t, v, "away for a day", token())
	clock.Pass(time.Minute)
	wantBad(t, v, "away for longer", token(), fault.Unavailable, "does not answer")
}

// TestAnotherIssuersDocument has an issuer serve a document that names another issuer, as a
// mistaken or a stolen address would.
func TestAnotherIssuersDocument(t *testing.T) {
	t.Parallel()
	i, clock := newIssuer(t), fixtures.NewClock()
	key := i.newKey("one", jose.ES256)
	i.change(func() { i.named = "https://other.test" })
	wantBad(t, verifier(t, clock, i), "another's", key.sign(t, i.claims(clock.Now(), nil)), fault.Unavailable, "does not answer")
	if n := i.count(); n > 0 {
		t.Errorf("its keys were read %d times", n)
	}
}

// TestAnIssuerWithoutKeysThatSign publishes a shared secret and a key of an unknown kind, as
// all issuers of these tests do, and no other key.
func TestAnIssuerWithoutKeysThatSign(t *testing.T) {
	t.Parallel()
	i, clock := newIssuer(t), fixtures.NewClock()
	stranger := signer{"shared", jose.ES256, keys[jose.ES256]()}
	wantBad(t, verifier(t, clock, i), "no keys", stranger.sign(t, i.claims(clock.Now(), nil)), fault.Unavailable, "does not answer")
}

func TestNobodyWaitsLongerThanHeWants(t *testing.T) {
	t.Parallel()
	i, clock := newIssuer(t), fixtures.NewClock()
	key := i.newKey("one", jose.ES256)
	v := verifier(t, clock, i)
	hold := make(chan struct{})
	i.change(func() { i.hold, i.held = hold, make(chan struct{}) })
	token := key.sign(t, i.claims(clock.Now(), nil))
	asked := make(chan error, 1)
	go func() {
		_, err := v.Verify(t.Context(), token)
		asked <- err
	}()
	<-i.held
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.Verify(ctx, token); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	close(hold)
	check.Must(t, <-asked)
}

func TestParseIssuers(t *testing.T) {
	t.Parallel()
	got, err := oidc.ParseIssuers([]string{"https://ci.test/a=slipway", "http://127.0.0.1:80=https://a=b"}, true)
	want := []oidc.Issuer{{URL: "https://ci.test/a", Audience: "slipway", Members: true}, {URL: "http://127.0.0.1:80", Audience: "https://a=b", Members: true}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{"", "https://ci.test", "https://ci.test=", "ci.test=a", "http://ci.test=a", "=a", "https://=a"} {
		if got, err := oidc.ParseIssuers([]string{bad}, false); err == nil {
			t.Errorf("%q: got %v", bad, got)
		}
	}
}
