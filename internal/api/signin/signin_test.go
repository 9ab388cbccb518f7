package signin_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/oidc/oidctest"
	"github.com/slipway-run/slipway/internal/api/signin"
	"github.com/slipway-run/slipway/internal/tenant/session"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestTheServerNamesItsIssuer(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	var offer signin.Offer
	check.Must(t, json.Unmarshal([]byte(f.want(t, http.StatusOK, "GET", signin.Path, "")), &offer))
	if i := offer.Issuer; i == nil || i.URL != f.issuer.URL || i.ClientID != oidctest.ClientID || !slices.Contains(i.Scopes, "openid") {
		t.Errorf("got %+v", offer.Issuer)
	}
}

func TestAPersonSignsInWithABrowser(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	b := f.begin(t, "")
	if !b.cookie.HttpOnly || b.cookie.SameSite != http.SameSiteLaxMode || b.cookie.MaxAge <= 0 {
		t.Errorf("the cookie is %s", b.cookie)
	}
	if query := b.address.Query(); query.Get("code_challenge_method") != "S256" || query.Get("nonce") == "" || strings.Contains(b.address.String(), strings.Split(b.cookie.Value, ".")[2]) {
		t.Errorf("the browser is sent to %s", b.address)
	}
	cookie, proof := f.open(t, f.end(t, f.back(t, b), b.header()))
	whoami := func(status int) string {
		t.Helper()
		return f.want(t, status, "GET", "/whoami", "", "Cookie", cookie, auth.HeaderConsole, proof)
	}
	if got, want := whoami(http.StatusOK), f.tenant+" viewer ann-1 of "+f.issuer.URL; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	f.want(t, http.StatusUnauthorized, "GET", "/whoami", "", "Cookie", cookie)
	_, err := f.workspaces.SetRole(t.Context(), f.tenant, f.member.ID, workspace.Editor, nil)
	check.Must(t, err)
	if got := whoami(http.StatusOK); !strings.Contains(got, " editor ") {
		t.Errorf("after a change of the role: %s", got)
	}
	check.Must(t, f.workspaces.RemoveMember(t.Context(), f.tenant, f.member.ID, nil))
	if got := whoami(http.StatusUnauthorized); !strings.Contains(got, "no longer a member") {
		t.Errorf("after the removal: %s", got)
	}
}

// TestSeveralSignInsOfABrowser begins two sign-ins in one browser, and ends both, although another
// page has had the browser call the callback meanwhile.
func TestSeveralSignInsOfABrowser(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	one, two := f.begin(t, ""), f.begin(t, "")
	both := one.header() + "; " + two.header()
	first, second := f.back(t, one), f.back(t, two)
	if answer, _ := f.send(t, "GET", "/sign-in/callback?state=planted&code=planted", "", "Cookie", both); len(answer.Cookies()) > 0 {
		t.Errorf("a planted link changes the cookies %s", answer.Cookies())
	}
	f.want(t, http.StatusMethodNotAllowed, "HEAD", second.String(), "", "Cookie", both)
	f.open(t, f.end(t, second, both))
	f.open(t, f.end(t, first, both))
}

// TestASignInAtAnotherHost begins a sign-in at another name of the server, whose cookie the
// callback would not get.
func TestASignInAtAnotherHost(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	other := strings.Replace(f.URL, "127.0.0.1", "localhost", 1)
	answer, text := f.send(t, "GET", other+signin.BrowserPath+"?workspace=one", "")
	own := f.URL + signin.BrowserPath + "?moved=1&workspace=one"
	if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != own || len(answer.Cookies()) > 0 {
		t.Errorf("got %d %s to %s, cookies %s", answer.StatusCode, text, answer.Header.Get("Location"), answer.Cookies())
	}
	// A proxy may send all requests with another host.
	for _, address := range []string{f.URL, other} {
		answer, text := f.send(t, "GET", address+signin.BrowserPath+"?moved=1&workspace=one", "")
		if !strings.HasPrefix(answer.Header.Get("Location"), f.issuer.URL) || len(answer.Cookies()) != 1 {
			t.Errorf("at %s: got %d %s to %s", address, answer.StatusCode, text, answer.Header.Get("Location"))
		}
	}
}

// TestTheCookiesOfAnEncryptedServer signs in where cookies are for encrypted connections only.
func TestTheCookiesOfAnEncryptedServer(t *testing.T) {
	t.Parallel()
	f := setUpAs(t, true, slog.New(slog.DiscardHandler))
	b := f.begin(t, "")
	if !strings.HasPrefix(b.cookie.Name, "__Host-slipway_sign_in_") || !b.cookie.Secure || b.cookie.Path != "/" || b.cookie.Domain != "" {
		t.Errorf("the cookie is %s", b.cookie)
	}
	code := f.end(t, f.back(t, b), b.header())
	if !strings.HasPrefix(f.binders[code], "__Host-slipway_sign_in_code=") {
		t.Errorf("the cookie of the code is %s", f.binders[code])
	}
	if cookie, _ := f.open(t, code); !strings.HasPrefix(cookie, "__Host-slipway_session=") {
		t.Errorf("the cookie of the session is %s", cookie)
	}
}

// TestAnIssuerThatDoesNotAnswer begins, ends and offers a sign-in while the issuer is away. The log
// says why that fails.
func TestAnIssuerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := setUpAs(t, false, slog.New(slog.NewTextHandler(&log, nil)))
	token := f.issuer.IDToken(time.Now(), nil)
	b := f.begin(t, "")
	callback := f.back(t, b)
	f.issuer.Close()
	f.wantRefused(t, "a code", "issuer", callback, b.header())
	f.clock.Pass(25 * time.Hour) // the keys of the issuer are kept for a day
	if answer, text := f.send(t, "GET", signin.BrowserPath, ""); answer.Header.Get("Location") != "/console/#/sign-in/refused/issuer" {
		t.Errorf("got %d %s to %s", answer.StatusCode, text, answer.Header.Get("Location"))
	}
	f.exchange(t, http.StatusServiceUnavailable, token, "")
	f.Close()
	if n := strings.Count(log.String(), "request failed in part"); n != 3 || !strings.Contains(log.String(), "connection refused") || strings.Contains(log.String(), token) || strings.Contains(log.String(), callback.Query().Get("code")) {
		t.Errorf("%d faults are logged: %s", n, log.String())
	}
}

func TestTheWorkspaceOfASignIn(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	two, err := f.workspaces.Create(t.Context(), "two")
	check.Must(t, err)
	token := f.issuer.IDToken(time.Now(), nil)
	f.exchange(t, http.StatusForbidden, token, "two")
	f.exchange(t, http.StatusForbidden, token, "three")
	f.exchange(t, http.StatusForbidden, token, "no name")
	if granted, _ := f.exchange(t, http.StatusCreated, token, ""); granted.Workspace != f.tenant || granted.User != "ann@example.test" || granted.Role != "viewer" {
		t.Errorf("got %+v", granted)
	}
	f.join(t, two.ID, workspace.Admin)
	if _, text := f.exchange(t, http.StatusConflict, token, ""); !strings.Contains(text, "one, two") {
		t.Errorf("got %s", text)
	}
	for _, named := range []string{"two", two.ID} {
		if granted, _ := f.exchange(t, http.StatusCreated, token, named); granted.Workspace != two.ID || granted.Role != "admin" {
			t.Errorf("got %+v", granted)
		}
		b := f.begin(t, "?workspace="+named)
		cookie, proof := f.open(t, f.end(t, f.back(t, b), b.header()))
		if got := f.want(t, http.StatusOK, "GET", "/whoami", "", "Cookie", cookie, auth.HeaderConsole, proof); !strings.HasPrefix(got, two.ID+" admin ") {
			t.Errorf("got %s", got)
		}
	}
	b := f.begin(t, "")
	if got := f.end(t, f.back(t, b), b.header()); got != "refused/several" {
		t.Errorf("got %s", got)
	}
	f.want(t, http.StatusBadRequest, "GET", signin.BrowserPath+"?workspace=a%3Bb", "")
}

func TestASessionOfTheCommandLine(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	token := f.issuer.IDToken(time.Now(), nil)
	granted, _ := f.exchange(t, http.StatusCreated, token, "")
	again, _ := f.exchange(t, http.StatusCreated, token, "")
	bearer := func(token string) []string { return []string{auth.HeaderBearer, "Bearer " + token} }
	if got, want := f.want(t, http.StatusOK, "GET", "/whoami", "", bearer(granted.Token)...), f.tenant+" viewer ann-1 of "+f.issuer.URL; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	f.want(t, http.StatusForbidden, "GET", "/whoami", "", append(bearer(granted.Token), auth.HeaderTenant, "0197a000-0000-7000-8000-00000000dead")...)
	for range 2 {
		f.want(t, http.StatusNoContent, "DELETE", signin.TokenPath, "", bearer(granted.Token)...)
	}
	f.want(t, http.StatusUnauthorized, "GET", "/whoami", "", bearer(granted.Token)...)
	f.want(t, http.StatusUnauthorized, "DELETE", signin.TokenPath, "")
	f.want(t, http.StatusOK, "GET", "/whoami", "", bearer(again.Token)...)
	f.clock.Pass(session.Life)
	f.want(t, http.StatusUnauthorized, "GET", "/whoami", "", bearer(again.Token)...)
}
