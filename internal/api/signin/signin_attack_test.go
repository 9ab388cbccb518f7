package signin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/oidc/oidctest"
	"github.com/slipway-run/slipway/internal/api/signin"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
)

func (f *fixture) wantRefused(t *testing.T, what, reason string, callback *url.URL, cookie string) {
	t.Helper()
	if got := f.end(t, callback, cookie); got != "refused/"+reason {
		t.Errorf("%s: got %s, want refused/%s", what, got, reason)
	}
}

// TestAttackTheStateIsForged ends a sign-in that another browser has begun, or that no browser has
// begun.
func TestAttackTheStateIsForged(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	mine, others := f.begin(t, ""), f.begin(t, "")
	callback := f.back(t, mine)
	f.wantRefused(t, "without a cookie", "state", callback, "")
	f.wantRefused(t, "the cookie of another sign-in", "state", callback, others.header())
	for _, value := range []string{"x", "...", ".a.b.", mine.cookie.Value[1:]} {
		f.wantRefused(t, "an invented cookie", "state", callback, mine.cookie.Name+"="+value)
	}
	for _, state := range []string{"", "x", others.address.Query().Get("state")} {
		forged := *callback
		query := forged.Query()
		query.Set("state", state)
		forged.RawQuery = query.Encode()
		f.wantRefused(t, "the state "+state, "state", &forged, mine.header())
	}
	f.open(t, f.end(t, callback, mine.header())) // none of these has used the code up
}

// TestAttackACodeIsReplayed uses the code of an issuer twice, and with another browser's secrets.
func TestAttackACodeIsReplayed(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	used, mine := f.begin(t, ""), f.begin(t, "")
	callback := f.back(t, used)
	f.open(t, f.end(t, callback, used.header()))
	f.wantRefused(t, "a code again", "denied", callback, used.header())

	stolen := f.back(t, f.begin(t, ""))
	query := stolen.Query()
	query.Set("state", mine.address.Query().Get("state"))
	stolen.RawQuery = query.Encode()
	f.wantRefused(t, "a stolen code", "denied", stolen, mine.header())
	f.issuer.SetPerson(nil)
	refusing := f.begin(t, "")
	f.wantRefused(t, "a person who refuses", "denied", f.back(t, refusing), refusing.header())
}

// TestAttackTheCodeIsOfAnotherBrowser has a person follow a link with the code of a sign-in that an
// attacker has made, so that the person works in the attacker's account.
func TestAttackTheCodeIsOfAnotherBrowser(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	attackers, persons := f.begin(t, ""), f.begin(t, "")
	code, own := f.end(t, f.back(t, attackers), attackers.header()), f.end(t, f.back(t, persons), persons.header())
	for _, cookie := range []string{"", f.binders[own], strings.Split(f.binders[code], "=")[0] + "="} {
		f.want(t, http.StatusUnauthorized, "POST", "/console/session", `{"code":"`+code+`"}`, auth.HeaderConsole, "1", "Cookie", cookie)
	}
	f.open(t, own)
	f.open(t, code)
}

// TestAttackTheNonceIsOfAnotherSignIn begins a sign-in whose token the issuer makes for another
// one: the attacker has changed the nonce on the way to the issuer.
func TestAttackTheNonceIsOfAnotherSignIn(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for _, nonce := range []string{"", "x", f.begin(t, "").address.Query().Get("nonce")} {
		b := f.begin(t, "")
		query := b.address.Query()
		query.Set("nonce", nonce)
		b.address.RawQuery = query.Encode()
		f.wantRefused(t, "the nonce "+nonce, "denied", f.back(t, b), b.header())
	}
}

// TestAttackAnyAddressIsTheNext asks for a way to another site in all parameters.
func TestAttackAnyAddressIsTheNext(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	const away = "https%3A%2F%2Felsewhere.example%2F"
	b := f.begin(t, "?redirect_uri="+away+"&return_to="+away+"&next=//elsewhere.example&state="+away)
	if strings.Contains(b.address.String(), "elsewhere") || b.address.Query().Get("redirect_uri") != f.URL+"/sign-in/callback" {
		t.Errorf("the browser is sent to %s", b.address)
	}
	callback := f.back(t, b)
	callback.RawQuery += "&redirect_uri=" + away + "&return_to=" + away
	f.open(t, f.end(t, callback, b.header()))
	f.want(t, http.StatusBadRequest, "GET", signin.BrowserPath+"?workspace="+away, "")
}

// TestAttackATokenThatIsNotOfThisClient offers tokens that the issuer did not make for a person at
// this server.
func TestAttackATokenThatIsNotOfThisClient(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	now := time.Now()
	part := func(v map[string]any) string {
		text, err := json.Marshal(v)
		check.Must(t, err)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	claims := map[string]any{
		"iss": f.issuer.URL, "aud": oidctest.ClientID, "sub": "ann-1", "email": "ann@example.test", "email_verified": true, "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
	}
	invented, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.Must(t, err)
	sign := func(keyID string) string {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: invented, KeyID: keyID}}, nil)
		check.Must(t, err)
		text, err := json.Marshal(claims)
		check.Must(t, err)
		signed, err := signer.Sign(text)
		check.Must(t, err)
		token, err := signed.CompactSerialize()
		check.Must(t, err)
		return token
	}
	stranger := oidctest.New(t)
	stranger.SetPerson(ann())
	for what, c := range map[string]struct{ token, words string }{
		"of another audience":        {f.issuer.IDToken(now, map[string]any{"aud": "another-client"}), "(aud)"},
		"of another party":           {f.issuer.IDToken(now, map[string]any{"aud": []string{oidctest.ClientID, "other"}, "azp": "other"}), "(azp)"},
		"of a party that is no text": {f.issuer.IDToken(now, map[string]any{"azp": []string{oidctest.ClientID}}), "(azp)"},
		"of several audiences":       {f.issuer.IDToken(now, map[string]any{"aud": []string{oidctest.ClientID, "other"}}), "(azp)"},
		"of a browser's sign-in":     {f.issuer.IDToken(now, map[string]any{"nonce": "x"}), "(nonce)"},
		"of another time":            {f.issuer.IDToken(now.Add(-11*time.Minute), map[string]any{"exp": now.Add(time.Minute).Unix()}), "(iat)"},
		"without a time":             {f.issuer.IDToken(now, map[string]any{"iat": nil}), "not valid"},
		"for access":                 {f.issuer.OtherToken(now, "at+jwt"), "(typ)"},
		"for access, in full":        {f.issuer.OtherToken(now, "application/AT+JWT"), "(typ)"},
		"for a logout":               {f.issuer.OtherToken(now, "logout+jwt"), "(typ)"},
		"of an unknown key":          {sign("unknown"), "(kid)"},
		"of a known key's name":      {sign("0"), "not valid"},
		"with the algorithm none":    {part(map[string]any{"alg": "none", "kid": "0"}) + "." + part(claims) + ".", "(alg)"},
		"that has expired":           {f.issuer.IDToken(now.Add(-time.Hour), nil), "(exp)"},
		"of another issuer":          {stranger.IDToken(now, nil), "(iss)"},
		"that is none":               {"x", "neither"},
	} {
		if _, text := f.exchange(t, http.StatusUnauthorized, c.token, ""); !strings.Contains(text, c.words) {
			t.Errorf("a token %s: got %s, want %q", what, text, c.words)
		}
	}
	f.exchange(t, http.StatusCreated, f.issuer.IDToken(now.Add(-9*time.Minute), map[string]any{
		"aud": []string{oidctest.ClientID, "other"}, "azp": oidctest.ClientID, "exp": now.Add(time.Minute).Unix(),
	}), "")
	for what, changes := range map[string]map[string]any{
		"without the issuer's word for the address": {"email_verified": false}, "of another person": {"email": "bob@example.test"},
		"whose subject is an address": {"sub": "ann@example.test", "email": nil},
	} {
		if _, text := f.exchange(t, http.StatusForbidden, f.issuer.IDToken(now, changes), ""); !strings.Contains(text, "not a member") {
			t.Errorf("a token %s: got %s", what, text)
		}
	}
	for _, body := range []string{"", "{}", "[]", `{"id_token":"` + strings.Repeat("x", 30<<10) + `"}`} {
		f.want(t, http.StatusBadRequest, "POST", signin.TokenPath, body)
	}
}

// TestAttackASessionOpensAnother tries to make a session last: with the token of the command line
// in a cookie, with that of a browser as a bearer token, and by asking for a code.
func TestAttackASessionOpensAnother(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	b := f.begin(t, "")
	cookie, proof := f.open(t, f.end(t, f.back(t, b), b.header()))
	name, token, _ := strings.Cut(cookie, "=")
	granted, _ := f.exchange(t, http.StatusCreated, f.issuer.IDToken(time.Now(), nil), "")
	for _, bearer := range []string{token, "slws_" + token, granted.Token + "A", "slws_"} {
		f.want(t, http.StatusUnauthorized, "GET", "/whoami", "", auth.HeaderBearer, "Bearer "+bearer)
		f.want(t, http.StatusNoContent, "DELETE", signin.TokenPath, "", auth.HeaderBearer, "Bearer "+bearer)
	}
	for _, proof := range []string{proof, "", "1"} {
		f.want(t, http.StatusUnauthorized, "GET", "/whoami", "", "Cookie", name+"="+granted.Token, auth.HeaderConsole, proof)
	}
	f.want(t, http.StatusForbidden, "POST", "/console/codes", "", "Cookie", cookie, auth.HeaderConsole, proof)
	f.want(t, http.StatusForbidden, "POST", "/console/codes", "", auth.HeaderBearer, "Bearer "+granted.Token)
	f.want(t, http.StatusOK, "GET", "/whoami", "", "Cookie", cookie, auth.HeaderConsole, proof)
	f.want(t, http.StatusOK, "GET", "/whoami", "", auth.HeaderBearer, "Bearer "+granted.Token)
}

// TestAttackARemovedMemberUsesACode removes a member between the sign-in and its session, and while
// the member has sessions. They stay over when the member is added again.
func TestAttackARemovedMemberUsesACode(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	b, used, late := f.begin(t, ""), f.begin(t, ""), f.begin(t, "")
	code, callback := f.end(t, f.back(t, b), b.header()), f.back(t, late)
	cookie, proof := f.open(t, f.end(t, f.back(t, used), used.header()))
	granted, _ := f.exchange(t, http.StatusCreated, f.issuer.IDToken(time.Now(), nil), "")
	wantOver := func() {
		t.Helper()
		f.want(t, http.StatusUnauthorized, "POST", "/console/session", `{"code":"`+code+`"}`, auth.HeaderConsole, "1", "Cookie", f.binders[code])
		f.want(t, http.StatusUnauthorized, "GET", "/whoami", "", "Cookie", cookie, auth.HeaderConsole, proof)
		f.want(t, http.StatusUnauthorized, "GET", "/whoami", "", auth.HeaderBearer, "Bearer "+granted.Token)
	}
	check.Must(t, f.workspaces.RemoveMember(t.Context(), f.tenant, f.member.ID, nil))
	wantOver()
	f.wantRefused(t, "a stranger", "member", callback, late.header())
	f.join(t, f.tenant, workspace.Viewer)
	wantOver()
	again := f.begin(t, "")
	f.open(t, f.end(t, f.back(t, again), again.header()))
}
