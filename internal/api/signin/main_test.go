package signin_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/console"
	"github.com/slipway-run/slipway/internal/api/oidc"
	"github.com/slipway-run/slipway/internal/api/oidc/oidctest"
	"github.com/slipway-run/slipway/internal/api/signin"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/session"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ann is a person as the issuer describes her.
func ann() map[string]any {
	return map[string]any{"sub": "ann-1", "email": "Ann@example.test", "email_verified": true}
}

// fixture is a server at which ann, a member of the workspace one, signs in, with /whoami, which
// shows callers their workspace, role and name.
type fixture struct {
	*httptest.Server

	issuer     *oidctest.Issuer
	workspaces *workspace.Store
	tenant     string
	member     workspace.Member
	client     *http.Client
	clock      fixtures.RunningClock
	// binders are the cookies that came with codes of sign-ins, by code.
	binders map[string]string
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	return setUpAs(t, false, slog.New(slog.DiscardHandler))
}

// setUpAs is setUp with a log, and with cookies for encrypted connections only if secure is true.
func setUpAs(t *testing.T, secure bool, log *slog.Logger) *fixture {
	t.Helper()
	f := &fixture{issuer: oidctest.New(t), binders: map[string]string{}}
	f.issuer.SetPerson(ann())
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	f.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	key, table := fixtures.Key(t), fixtures.Table(t)
	f.workspaces = workspace.NewStore(table, f.clock.Now)
	made, err := f.workspaces.Create(t.Context(), "one")
	check.Must(t, err)
	f.tenant = made.ID
	f.member = f.join(t, f.tenant, workspace.Viewer)
	keys := apikey.NewStore(table, key, f.clock.Now)
	sessions := session.NewStore(table, keys, f.workspaces, f.clock.Now)
	authenticator, cookies := auth.New(keys), auth.SessionCookies{Secure: secure}
	authenticator.AcceptSessions(sessions, cookies)
	mux := web.NewMux(log)
	mux.Handle("/whoami", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := auth.Tenant(authenticator, r)
		if err != nil {
			mux.Error(w, r, err)
			return
		}
		_, _ = io.WriteString(w, strings.Join([]string{caller.Workspace, string(caller.Role), caller.Subject}, " "))
	}))
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	console.Register(mux, console.Config{Authenticator: authenticator, Sessions: sessions, BaseURL: f.URL, Cookies: cookies})
	signin.Register(mux, signin.Config{
		Client:     oidc.NewClient(oidc.Issuer{URL: f.issuer.URL, Audience: oidctest.ClientID, Members: true}, f.client, f.clock.Now),
		Workspaces: f.workspaces, Sessions: sessions, Cookies: cookies, BaseURL: f.URL,
	})
	return f
}

// join makes ann a member of a workspace.
func (f *fixture) join(t *testing.T, tenant string, role workspace.Role) workspace.Member {
	t.Helper()
	m, err := f.workspaces.AddMember(t.Context(), tenant, "ann@example.test", "", role)
	check.Must(t, err)
	return m
}

// send sends a request with headers, given as names and values in turn, and follows no redirect.
func (f *fixture) send(t *testing.T, method, address, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	if strings.HasPrefix(address, "/") {
		address = f.URL + address
	}
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	check.Must(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := f.client.Do(r)
	check.Must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	check.Must(t, err)
	return answer, string(text)
}

func (f *fixture) want(t *testing.T, status int, method, address, body string, headers ...string) string {
	t.Helper()
	answer, text := f.send(t, method, address, body, headers...)
	if answer.StatusCode != status {
		t.Fatalf("%s %s: got %d %s, want %d", method, address, answer.StatusCode, text, status)
	}
	return text
}

// begun is a sign-in that a browser has begun: the cookie that it got, and the address at the
// issuer to which it was sent.
type begun struct {
	cookie  *http.Cookie
	address *url.URL
}

func (b begun) header() string { return b.cookie.Name + "=" + b.cookie.Value }

func (f *fixture) begin(t *testing.T, query string) begun {
	t.Helper()
	answer, text := f.send(t, "GET", signin.BrowserPath+query, "")
	address, err := answer.Location()
	if err != nil || answer.StatusCode != http.StatusSeeOther || len(answer.Cookies()) != 1 {
		t.Fatalf("got %d %s (%v), cookies %v", answer.StatusCode, text, err, answer.Cookies())
	}
	return begun{answer.Cookies()[0], address}
}

// back asks the issuer, as the person's browser does, and returns the address to which the issuer
// sends the browser.
func (f *fixture) back(t *testing.T, b begun) *url.URL {
	t.Helper()
	answer, text := f.send(t, "GET", b.address.String(), "")
	address, err := answer.Location()
	if err != nil || answer.StatusCode != http.StatusFound {
		t.Fatalf("the issuer answers %d %s (%v)", answer.StatusCode, text, err)
	}
	return address
}

// end calls the callback, and returns the fragment of the console's address to which it leads.
func (f *fixture) end(t *testing.T, callback *url.URL, cookie string) string {
	t.Helper()
	answer, text := f.send(t, "GET", callback.String(), "", "Cookie", cookie)
	outcome, ok := strings.CutPrefix(answer.Header.Get("Location"), "/console/#/sign-in/")
	if !ok || answer.StatusCode != http.StatusSeeOther {
		t.Fatalf("got %d to %s: %s", answer.StatusCode, answer.Header.Get("Location"), text)
	}
	for _, cookie := range answer.Cookies() {
		if cookie.MaxAge < 0 {
			continue
		}
		if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.MaxAge != int(session.CodeLife.Seconds()) || strings.HasPrefix(outcome, "refused") {
			t.Errorf("the callback sets the cookie %s", cookie)
		}
		f.binders[outcome] = cookie.Name + "=" + cookie.Value
	}
	return outcome
}

// open exchanges the code of a sign-in for a session, as the page does, and returns its cookie and
// its proof.
func (f *fixture) open(t *testing.T, code string) (cookie, proof string) {
	t.Helper()
	answer, text := f.send(t, "POST", "/console/session", `{"code":"`+code+`"}`, auth.HeaderConsole, "1", "Cookie", f.binders[code])
	if answer.StatusCode != http.StatusCreated || len(answer.Cookies()) != 2 {
		t.Fatalf("got %d %s, cookies %s", answer.StatusCode, text, answer.Cookies())
	}
	gone, made := answer.Cookies()[0], answer.Cookies()[1]
	if !strings.HasPrefix(f.binders[code], gone.Name+"=") || gone.MaxAge >= 0 {
		t.Errorf("the cookie of the code becomes %s", gone)
	}
	if !made.HttpOnly || made.SameSite != http.SameSiteStrictMode {
		t.Errorf("the cookie is %s", made)
	}
	var opened struct{ Proof string }
	check.Must(t, json.Unmarshal([]byte(text), &opened))
	return made.Name + "=" + made.Value, opened.Proof
}

// exchange offers an ID token for a session of the command line.
func (f *fixture) exchange(t *testing.T, status int, token, workspace string) (granted signin.Granted, text string) {
	t.Helper()
	body, err := json.Marshal(signin.Wanted{Token: token, Workspace: workspace})
	check.Must(t, err)
	text = f.want(t, status, "POST", signin.TokenPath, string(body))
	if status == http.StatusCreated {
		check.Must(t, json.Unmarshal([]byte(text), &granted))
	}
	return granted, text
}
