package console_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/console"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/session"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// fixture is a server with the console, and with /whoami, which shows a caller its workspace
// and its role.
type fixture struct {
	*httptest.Server

	keys    *apikey.Store
	members *workspace.Store
	tenant  string
	clock   fixtures.RunningClock
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	return setUpAs(t, false)
}

// setUpAs sets up a server. Its cookies are for encrypted connections only if secure is true,
// otherwise for any connection.
func setUpAs(t *testing.T, secure bool) *fixture {
	t.Helper()
	f, key, table := &fixture{}, fixtures.Key(t), fixtures.Table(t)
	f.members = workspace.NewStore(table, f.clock.Now)
	made, err := f.members.Create(t.Context(), "one")
	check.Must(t, err)
	f.tenant = made.ID
	f.keys = apikey.NewStore(table, key, f.clock.Now)
	sessions := session.NewStore(table, f.keys, f.members, f.clock.Now)
	authenticator := auth.New(f.keys)
	cookies := auth.SessionCookies{Secure: secure}
	authenticator.AcceptSessions(sessions, cookies)
	mux := web.NewMux(slog.New(slog.DiscardHandler))
	mux.Handle("/whoami", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := auth.Tenant(authenticator, r)
		if err != nil {
			mux.Error(w, r, err)
			return
		}
		_, _ = io.WriteString(w, caller.Workspace+" "+string(caller.Role))
	}))
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	console.Register(mux, console.Config{Authenticator: authenticator, Sessions: sessions, BaseURL: f.URL, Cookies: cookies})
	return f
}

func (f *fixture) issue(t *testing.T, n apikey.NewKey) (apikey.Key, string) {
	t.Helper()
	n.Workspace = f.tenant
	made, key, err := f.keys.Issue(t.Context(), n)
	check.Must(t, err)
	return made, key
}

// send sends a request with headers, given as names and values in turn.
func (f *fixture) send(t *testing.T, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, f.URL+path, strings.NewReader(body))
	check.Must(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	check.Must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	check.Must(t, err)
	return answer, string(text)
}

func (f *fixture) want(t *testing.T, status int, method, path, body string, headers ...string) string {
	t.Helper()
	answer, text := f.send(t, method, path, body, headers...)
	if answer.StatusCode != status {
		t.Fatalf("%s %s: got %d %s, want %d", method, path, answer.StatusCode, text, status)
	}
	return text
}

// code asks for a code with a key.
func (f *fixture) code(t *testing.T, key string) string {
	t.Helper()
	var made struct{ Code, URL string }
	check.Must(t, json.Unmarshal([]byte(f.want(t, http.StatusCreated, "POST", "/console/codes", "", auth.HeaderKey, key)), &made))
	if made.URL != f.URL+"/console/#/sign-in/"+made.Code {
		t.Errorf("the address is %s", made.URL)
	}
	return `{"code":"` + made.Code + `"}`
}

// signIn opens a session, and returns its cookie as a browser sends it, and its proof.
func (f *fixture) signIn(t *testing.T, key string) (cookieText, proof string) {
	t.Helper()
	answer, text := f.send(t, "POST", "/console/session", f.code(t, key), auth.HeaderConsole, "1")
	if answer.StatusCode != http.StatusCreated || len(answer.Cookies()) != 1 {
		t.Fatalf("got %d %s, cookies %v", answer.StatusCode, text, answer.Cookies())
	}
	var made struct{ Proof string }
	check.Must(t, json.Unmarshal([]byte(text), &made))
	cookie := answer.Cookies()[0]
	if made.Proof == "" || made.Proof == cookie.Value {
		t.Errorf("the proof is %q, the token %q", made.Proof, cookie.Value)
	}
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.MaxAge <= 0 {
		t.Errorf("the cookie is %s", cookie)
	}
	return cookie.Name + "=" + cookie.Value, made.Proof
}

func TestASessionActsAsItsKey(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	made, key := f.issue(t, apikey.NewKey{Role: workspace.Viewer})
	cookie, proof := f.signIn(t, key)
	if got := f.want(t, http.StatusOK, "GET", "/whoami", "", "Cookie", cookie, auth.HeaderConsole, proof); got != f.tenant+" viewer" {
		t.Errorf("got %s", got)
	}
	check.Must(t, f.keys.Revoke(t.Context(), f.tenant, made.ID))
	f.want(t, http.StatusUnauthorized, "GET", "/whoami", "", "Cookie", cookie, auth.HeaderConsole, proof)
}

func TestASessionEnds(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, key := f.issue(t, apikey.NewKey{Role: workspace.Admin})
	closed, closedProof := f.signIn(t, key)
	old, oldProof := f.signIn(t, key)
	f.want(t, http.StatusNoContent, "DELETE", "/console/session", "", "Cookie", closed, auth.HeaderConsole, closedProof)
	f.want(t, http.StatusUnauthorized, "GET", "/whoami", "", "Cookie", closed, auth.HeaderConsole, closedProof)
	f.want(t, http.StatusOK, "GET", "/whoami", "", "Cookie", old, auth.HeaderConsole, oldProof)
	f.clock.Pass(session.Life)
	f.want(t, http.StatusUnauthorized, "GET", "/whoami", "", "Cookie", old, auth.HeaderConsole, oldProof)

	expiring, key := f.issue(t, apikey.NewKey{Role: workspace.Admin, Lifetime: time.Hour})
	last, lastProof := f.signIn(t, key)
	f.clock.Pass(expiring.Expires.Sub(f.clock.Now()) + time.Second)
	f.want(t, http.StatusUnauthorized, "GET", "/whoami", "", "Cookie", last, auth.HeaderConsole, lastProof)
}

func TestAttackACodeIsUsedTwiceLateOrWithoutItsKey(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	made, key := f.issue(t, apikey.NewKey{Role: workspace.Admin})
	used, late, orphaned := f.code(t, key), f.code(t, key), f.code(t, key)
	f.want(t, http.StatusCreated, "POST", "/console/session", used, auth.HeaderConsole, "1")
	f.want(t, http.StatusUnauthorized, "POST", "/console/session", used, auth.HeaderConsole, "1")
	check.Must(t, f.keys.Revoke(t.Context(), f.tenant, made.ID))
	f.want(t, http.StatusUnauthorized, "POST", "/console/session", orphaned, auth.HeaderConsole, "1")
	f.clock.Pass(session.CodeLife)
	f.want(t, http.StatusUnauthorized, "POST", "/console/session", late, auth.HeaderConsole, "1")
	for _, body := range []string{"", "{}", `{"code":""}`, "[]", `{"code":"` + strings.Repeat("A", 2000) + `"}`} {
		f.want(t, http.StatusBadRequest, "POST", "/console/session", body, auth.HeaderConsole, "1")
	}
	why := f.want(t, http.StatusUnauthorized, "POST", "/console/session", `{"code":"guessed"}`, auth.HeaderConsole, "1")
	if !strings.Contains(why, "once and for 60 seconds") {
		t.Errorf("the code is refused with %s", why)
	}
}

// TestAttackAnotherOriginUsesASession sends the requests that a page of another origin can
// make a browser send.
func TestAttackAnotherOriginUsesASession(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, key := f.issue(t, apikey.NewKey{Role: workspace.Admin})
	cookie, proof := f.signIn(t, key)
	f.want(t, http.StatusUnauthorized, "GET", "/whoami", "", "Cookie", cookie)
	f.want(t, http.StatusUnauthorized, "POST", "/whoami", "", "Cookie", cookie, "Content-Type", "text/plain")
	f.want(t, http.StatusForbidden, "POST", "/whoami", "", "Cookie", cookie, auth.HeaderConsole, proof, "Sec-Fetch-Site", "cross-site")
	f.want(t, http.StatusForbidden, "POST", "/whoami", "", "Cookie", cookie, auth.HeaderConsole, proof, "Origin", "https://elsewhere.example")
	f.want(t, http.StatusForbidden, "POST", "/console/session", f.code(t, key))
	f.want(t, http.StatusForbidden, "POST", "/console/session", f.code(t, key), auth.HeaderConsole, "1", "Sec-Fetch-Site", "cross-site")
	f.want(t, http.StatusForbidden, "DELETE", "/console/session", "", "Cookie", cookie)
	answer, _ := f.send(t, "OPTIONS", "/whoami", "", "Origin", "https://elsewhere.example", "Access-Control-Request-Headers", auth.HeaderConsole)
	if allowed := answer.Header.Get("Access-Control-Allow-Origin"); allowed != "" {
		t.Errorf("the server lets in %s", allowed)
	}
}

// TestAttackASessionRenewsItself: a session makes no further session, so that a stolen session
// ends.
func TestAttackASessionRenewsItself(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, key := f.issue(t, apikey.NewKey{Role: workspace.Admin})
	cookie, proof := f.signIn(t, key)
	f.want(t, http.StatusForbidden, "POST", "/console/codes", "", "Cookie", cookie, auth.HeaderConsole, proof)
	f.want(t, http.StatusUnauthorized, "POST", "/console/codes", "")
	for _, other := range []string{"Basic x", "Bearer", "Bearer ", "x"} {
		f.want(t, http.StatusUnauthorized, "POST", "/console/codes", "", "Cookie", cookie, auth.HeaderConsole, proof, auth.HeaderBearer, other)
		f.want(t, http.StatusUnauthorized, "GET", "/whoami", "", "Cookie", cookie, auth.HeaderConsole, proof, auth.HeaderBearer, other)
	}
}

// TestAttackAnAgentUsesTheCookieItWasSent sends the part of a session that a browser sends to
// a page that an agent serves at another port of the host: the cookie, without the proof.
func TestAttackAnAgentUsesTheCookieItWasSent(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, key := f.issue(t, apikey.NewKey{Role: workspace.Admin})
	cookie, proof := f.signIn(t, key)
	_, anothers := f.signIn(t, key)
	_, token, _ := strings.Cut(cookie, "=")
	for _, guess := range []string{"1", token, anothers, proof[:len(proof)-1], proof + "A", strings.ToLower(proof)} {
		f.want(t, http.StatusUnauthorized, "GET", "/whoami", "", "Cookie", cookie, auth.HeaderConsole, guess)
		// The request does not end any session either.
		f.want(t, http.StatusNoContent, "DELETE", "/console/session", "", "Cookie", cookie, auth.HeaderConsole, guess)
	}
	f.want(t, http.StatusOK, "GET", "/whoami", "", "Cookie", cookie, auth.HeaderConsole, proof)
}

// TestAttackAnotherServerOfTheHostSetsTheCookie: over encrypted connections the cookie has a name
// that only the host itself may set, and no other name counts.
func TestAttackAnotherServerOfTheHostSetsTheCookie(t *testing.T) {
	t.Parallel()
	f := setUpAs(t, true)
	_, key := f.issue(t, apikey.NewKey{Role: workspace.Admin})
	cookie, proof := f.signIn(t, key)
	planted, ok := strings.CutPrefix(cookie, "__Host-")
	if !ok {
		t.Fatalf("the cookie is %s", cookie)
	}
	f.want(t, http.StatusOK, "GET", "/whoami", "", "Cookie", cookie, auth.HeaderConsole, proof)
	f.want(t, http.StatusUnauthorized, "GET", "/whoami", "", "Cookie", planted, auth.HeaderConsole, proof)
}

func TestThePageLoadsFromItsOwnOrigin(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	answer, _ := f.send(t, "GET", "/", "")
	if answer.StatusCode != http.StatusTemporaryRedirect || answer.Header.Get("Location") != "/console/" {
		t.Errorf("got %d to %s", answer.StatusCode, answer.Header.Get("Location"))
	}
	answer, page := f.send(t, "GET", "/console/", "")
	policy := answer.Header.Get("Content-Security-Policy")
	if answer.StatusCode != http.StatusOK || !strings.Contains(policy, "script-src 'self';") || strings.Contains(policy, "unsafe") {
		t.Errorf("got %d with the policy %s", answer.StatusCode, policy)
	}
	if strings.Contains(page, "<script>") || strings.Contains(page, "style=") || strings.Contains(page, "//") {
		t.Errorf("the page has something in it that the policy blocks:\n%s", page)
	}
	for path, want := range map[string]string{"app.js": "text/javascript", "vendor/lit.js": "text/javascript", "console.css": "text/css", "icon.svg": "image/svg+xml"} {
		answer, _ := f.send(t, "GET", "/console/"+path, "")
		if answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), want) {
			t.Errorf("%s: got %d %s", path, answer.StatusCode, answer.Header.Get("Content-Type"))
		}
	}
	f.want(t, http.StatusNotFound, "GET", "/console/console.go", "")
}
