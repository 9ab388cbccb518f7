package controlplane_test

import (
	"context"
	"html"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
	"github.com/slipway-run/slipway/internal/tenant/authservice/oauthtest"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
)

// opened is a page as a browser without credentials gets it.
type opened struct {
	status int
	header http.Header
	text   string
	at     *url.URL
}

// action is the address in a page to which the button leads. The page has to escape it.
var action = regexp.MustCompile(`<form method="post" action="((?:[^"&<>]|&amp;)*)">`)

// leads returns the path and the query to which the page's button leads.
func (p opened) leads(t *testing.T) string {
	t.Helper()
	found := action.FindStringSubmatch(p.text)
	if found == nil {
		t.Fatalf("the button leads nowhere:\n%s", p.text)
	}
	to, err := p.at.Parse(html.UnescapeString(found[1]))
	check.Must(t, err)
	return to.RequestURI()
}

func (f *authFixture) open(t *testing.T, path string) opened {
	t.Helper()
	return f.browse(t, "GET", path, "")
}

// agree opens the address of a callback, and presses the button of the page that asks there.
func (f *authFixture) agree(t *testing.T, path string) opened {
	t.Helper()
	asked := f.open(t, path)
	wantHubPage(t, asked, http.StatusOK, true, "Connect your account?")
	return f.browse(t, "POST", asked.leads(t), "same-origin")
}

// wantPage checks a page and its instructions for browsers.
func wantPage(t *testing.T, p opened, status int, words ...string) {
	t.Helper()
	if p.status != status || p.header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("got status %d, %s: %s", p.status, p.header.Get("Content-Type"), p.text)
	}
	for _, word := range words {
		if !strings.Contains(p.text, word) {
			t.Errorf("the page does not say %q:\n%s", word, p.text)
		}
	}
	policy := p.header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'", "style-src 'sha256-"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy is %q, without %s", policy, part)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(p.text, "<script") {
		t.Errorf("scripts: %q\n%s", policy, p.text)
	}
	for name, want := range map[string]string{"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
		if p.header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, p.header.Get(name), want)
		}
	}
}

func (f *authFixture) ask(t *testing.T, body object) response {
	t.Helper()
	asked := f.call(t, "POST", "/v2/auth/authenticate", body)
	wantStatus(t, asked, http.StatusOK)
	return asked
}

// TestAUserConsents goes through the whole flow, and looks for secrets in all answers and log
// lines of the flow.
func TestAUserConsents(t *testing.T) {
	t.Parallel()
	rule(t, authFlow)
	f := setUpAuth(t)
	var texts []string
	note := func(r response) response {
		texts = append(texts, string(r.text))
		return r
	}
	wantStatus(t, note(f.call(t, "POST", "/v2/auth/providers", f.newProvider("calendar"))), http.StatusOK)
	want := object{"provider": "calendar", "scopes": []any{"read"}, "user_id": "ada"}
	asked := note(f.ask(t, want))
	if asked.member("status") != "pending" || asked.member("token") != nil {
		t.Fatalf("got %s", asked.text)
	}
	consent, err := url.Parse(asked.id("url"))
	if err != nil || consent.Query().Get("redirect_uri") != callbackBase+"/v2/auth/callback/calendar" {
		t.Errorf("the user is sent to %s, which does not lead back", consent)
	}
	wait := "/v2/auth/wait/" + asked.id("auth_id")
	if looked := note(f.call(t, "GET", wait+"?timeout=0", nil)); looked.member("status") != "pending" {
		t.Errorf("got %s", looked.text)
	}
	waited := make(chan response, 1)
	go func() { waited <- f.call(t, "GET", "/api-host"+wait+"?timeout=60", nil) }()
	back := f.oauth.Consent(t, asked.id("url"))
	asks := f.open(t, "/v2/auth/callback/calendar?"+back.Encode())
	wantHubPage(t, asks, http.StatusOK, true, "Connect your account?", "user “ada”", "workspace “", f.own.workspace, "“Calendar”")
	page := f.browse(t, "POST", asks.leads(t), "same-origin")
	wantPage(t, page, http.StatusOK, "Connected")
	texts = append(texts, action.ReplaceAllString(asks.text, ""), page.text)
	done := <-waited
	token := done.id("token")
	if done.member("status") != "completed" || done.member("user_id") != "ada" || !f.oauth.Accepts(token) {
		t.Errorf("got %s", done.text)
	}
	if now := f.ask(t, want); now.member("status") != "completed" || now.id("token") != token {
		t.Errorf("got %s", now.text)
	}
	// A second use of the same address is refused.
	again := f.open(t, "/v2/auth/callback/calendar?"+back.Encode())
	wantPage(t, again, http.StatusBadRequest, "Already connected", "used before")
	texts = append(texts, again.text)
	for _, path := range []string{"/v2/auth/providers", "/v2/auth/providers/calendar", "/v2/auth/tokens?user_id=ada", "/v2/auth/token-events?user_id=ada"} {
		note(f.call(t, "GET", path, nil))
	}
	id := f.call(t, "GET", "/v2/auth/tokens?user_id=ada", nil).body.([]any)[0].(object)["id"].(string)
	wantStatus(t, note(f.call(t, "PATCH", "/v2/auth/tokens/"+id+"/metadata?user_id=ada", object{"metadata": object{"a": 1}})), http.StatusOK)
	wantStatus(t, f.call(t, "DELETE", "/v2/auth/tokens/"+id+"?user_id=ada", nil), http.StatusNoContent)
	if len(f.oauth.Revoked()) == 0 {
		t.Error("the token was not revoked")
	}
	if gone := note(f.call(t, "GET", wait+"?timeout=0", nil)); gone.member("status") != "not_found" {
		t.Errorf("got %s", gone.text)
	}
	f.assertNoSecrets(t, back, texts...)
}

// TestALookAtACallbackUsesNothing requests the address before the browser does, as a link
// scanner would.
func TestALookAtACallbackUsesNothing(t *testing.T) {
	t.Parallel()
	rule(t, authHead)
	f := setUpAuth(t)
	wantStatus(t, f.call(t, "POST", "/v2/auth/providers", f.newProvider("calendar")), http.StatusOK)
	for _, path := range []string{"/v2/auth/callback/calendar?", "/v2/auth/setup/calendar?"} {
		asked := f.ask(t, object{"provider": "calendar", "scopes": []any{"read"}, "user_id": path})
		back := path + f.oauth.Consent(t, asked.id("url")).Encode()
		for _, base := range []string{"", "/api-host"} {
			looked := f.send(t, "HEAD", base+back, nil, nil)
			if wantStatus(t, looked, http.StatusOK); looked.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("HEAD: %v", looked.Header)
			}
		}
		if wait := f.call(t, "GET", "/v2/auth/wait/"+asked.id("auth_id")+"?timeout=0", nil); wait.member("status") != "pending" {
			t.Errorf("got %s", wait.text)
		}
		wantPage(t, f.agree(t, back), http.StatusOK, "Connected")
	}
}

// TestTheUserAgreesOnThePageOfThisServer opens another person's link, and has other pages send what
// the button sends.
func TestTheUserAgreesOnThePageOfThisServer(t *testing.T) {
	t.Parallel()
	rule(t, authAgreed)
	f := setUpAuth(t)
	wantStatus(t, f.call(t, "POST", "/v2/auth/providers", f.newProvider("calendar")), http.StatusOK)
	asked := f.ask(t, object{"provider": "calendar", "scopes": []any{"read"}, "user_id": "<i>mallory"})
	back := f.oauth.Consent(t, asked.id("url")).Encode()
	for _, path := range []string{"/v2/auth/callback/calendar?", "/api-host/v2/auth/callback/calendar?", "/v2/auth/setup/calendar?"} {
		for range 2 { // a GET does not use up the state
			wantHubPage(t, f.open(t, path+back), http.StatusOK, true, "user “&lt;i&gt;mallory”")
		}
	}
	confirm := f.open(t, "/v2/auth/callback/calendar?"+back).leads(t)
	for _, site := range []string{"cross-site", "same-site", "none"} {
		wantPage(t, f.browse(t, "POST", confirm, site), http.StatusForbidden, "on the page of this server")
	}
	if wait := f.call(t, "GET", "/v2/auth/wait/"+asked.id("auth_id")+"?timeout=0", nil); wait.member("status") != "pending" {
		t.Errorf("got %s", wait.text)
	}
	wantPage(t, f.browse(t, "POST", confirm, "same-origin"), http.StatusOK, "Connected")
	wantPage(t, f.browse(t, "POST", confirm, "same-origin"), http.StatusBadRequest, "Already connected", "used before")
	wantPage(t, f.open(t, "/v2/auth/callback/calendar?"+back), http.StatusBadRequest, "Already connected", "used before")
}

// TestTheQuestionSendsOnWhatCame has an answer of a provider hold markup.
func TestTheQuestionSendsOnWhatCame(t *testing.T) {
	t.Parallel()
	f := setUpAuth(t)
	wantStatus(t, f.call(t, "POST", "/v2/auth/providers", f.newProvider("calendar")), http.StatusOK)
	asked := f.ask(t, object{"provider": "calendar", "scopes": []any{"read"}, "user_id": "ada"})
	back := f.oauth.Consent(t, asked.id("url"))
	sent := url.Values{"state": back["state"], "code": {`a+b c&d=e"><i>[button]`}, "iss": {`'"><i>`}}
	for _, path := range []string{"/v2/auth/callback/calendar?", "/v2/auth/setup/calendar?"} {
		asks := f.open(t, path+sent.Encode())
		wantHubPage(t, asks, http.StatusOK, true)
		if want := "/v2/auth/setup/calendar?" + sent.Encode(); asks.leads(t) != want || strings.Contains(asks.text, "<i>") {
			t.Errorf("the button leads to %s, want %s:\n%s", asks.leads(t), want, asks.text)
		}
	}
}

// TestTheIssuerOutlivesTheQuestion has a provider that names its issuer.
func TestTheIssuerOutlivesTheQuestion(t *testing.T) {
	t.Parallel()
	f := setUpAuth(t)
	f.createNamesIssuer(t)
	for issuer, want := range map[string]string{f.oauth.URL: "Connected", "https://evil.test": "invalid_issuer", "": "invalid_issuer"} {
		asked := f.ask(t, object{"provider": "calendar", "scopes": []any{"read"}, "user_id": "ada of " + issuer})
		back := f.oauth.Consent(t, asked.id("url"))
		if back.Set("iss", issuer); issuer == "" {
			back.Del("iss")
		}
		wantPage(t, f.agree(t, "/v2/auth/callback/calendar?"+back.Encode()), http.StatusOK, want)
	}
}

// createNamesIssuer creates the provider calendar, which says that its answers name their issuer.
func (f *authFixture) createNamesIssuer(t *testing.T) {
	t.Helper()
	spec := authservice.ProviderSpec{
		Name: "Calendar", ClientID: oauthtest.ClientID, AuthURL: f.oauth.URL + "/authorize", TokenURL: f.oauth.URL + "/token",
		Issuer: f.oauth.URL, NamesIssuer: true, UsesPKCE: true,
	}
	provider := authservice.NewProvider{Workspace: f.own.workspace, ProviderID: "calendar", ProviderSpec: spec, ClientSecret: new(oauthtest.ClientSecret)}
	if _, err := f.service.CreateProvider(t.Context(), provider); err != nil {
		t.Fatal(err)
	}
}

// assertNoSecrets looks in the texts and in the log for the tokens of the provider and for the
// client's secret, code and state.
func (f *authFixture) assertNoSecrets(t *testing.T, back url.Values, texts ...string) {
	t.Helper()
	secrets := append(f.oauth.Issued(), oauthtest.ClientSecret, url.QueryEscape(oauthtest.ClientSecret), back.Get("code"))
	for _, text := range append(texts, f.log.String()) {
		for _, secret := range secrets {
			if secret != "" && strings.Contains(text, secret) {
				t.Errorf("a secret is in %s", text)
			}
		}
	}
	if state := back.Get("state"); strings.Contains(f.log.String(), state) {
		t.Error("the state is in the log")
	}
	if !strings.Contains(f.log.String(), "/v2/auth/callback/{provider_id}") {
		t.Error("requests are not in the log, where secrets were looked for")
	}
}

// TestARefusalIsSaid has the user, and then the provider, refuse. Their message is shown as
// text, whatever it contains.
func TestARefusalIsSaid(t *testing.T) {
	t.Parallel()
	rule(t, authDenied)
	f := setUpAuth(t)
	wantStatus(t, f.call(t, "POST", "/v2/auth/providers", f.newProvider("calendar")), http.StatusOK)
	asked := f.ask(t, object{"provider": "calendar", "scopes": []any{"read"}, "user_id": "ada"})
	consent, err := url.Parse(asked.id("url"))
	check.Must(t, err)
	state := consent.Query().Get("state")
	back := url.Values{"state": {state}, "error": {"access_denied"}, "error_description": {"<script>alert(1)</script> no"}}
	page := f.open(t, "/v2/auth/callback/calendar?"+back.Encode())
	wantPage(t, page, http.StatusOK, "Not connected", "access_denied", "&lt;script&gt;")
	if strings.Contains(page.text, state) {
		t.Error("the page has the state in it")
	}
	ended := f.call(t, "GET", "/v2/auth/wait/"+asked.id("auth_id"), nil)
	if ended.member("status") != "not_found" || ended.member("error") != "access_denied" {
		t.Errorf("got %s", ended.text)
	}
	for _, query := range []string{"", "?state=x&code=y", "?code=y", "?error=access_denied", "?state=" + state + "&code=y", "?state=%00&code=%ff"} {
		wantPage(t, f.open(t, "/v2/auth/callback/calendar"+query), http.StatusBadRequest, "Not connected")
	}
	wantPage(t, f.open(t, "/v2/auth/callback/"+url.PathEscape("<b>")), http.StatusBadRequest, "Not connected")
}

// TestAClientHandsInAllThatAProviderSends has a provider that names its issuer, as those do that an
// MCP server leads to.
func TestAClientHandsInAllThatAProviderSends(t *testing.T) {
	t.Parallel()
	f := setUpAuth(t)
	f.createNamesIssuer(t)
	for name, c := range map[string]struct {
		sent object
		want any
	}{
		"the issuer":     {object{"iss": f.oauth.URL}, nil},
		"another issuer": {object{"iss": "https://evil.test"}, "invalid_issuer"},
		"no issuer":      {object{}, "invalid_issuer"},
		"a refusal":      {object{"iss": f.oauth.URL, "code": nil, "error": "access_denied", "error_description": "no"}, "access_denied"},
	} {
		asked := f.ask(t, object{"provider": "calendar", "scopes": []any{"read"}, "user_id": name})
		back := f.oauth.Consent(t, asked.id("url"))
		body := object{"state": back.Get("state"), "code": back.Get("code")}
		maps.Copy(body, c.sent)
		if body["code"] == nil {
			delete(body, "code")
		}
		if got := f.call(t, "POST", "/v2/auth/callback/calendar", body); got.StatusCode != http.StatusOK || got.member("error") != c.want {
			t.Errorf("%s: got %d %s", name, got.StatusCode, got.text)
		}
		if ended := f.call(t, "GET", "/v2/auth/wait/"+asked.id("auth_id")+"?timeout=0", nil); ended.member("error") != c.want {
			t.Errorf("%s: a waiting client gets %s", name, ended.text)
		}
	}
}

// TestASetupPage shows the page for a user who installed an app: with a state it is a callback.
func TestASetupPage(t *testing.T) {
	t.Parallel()
	rule(t, authSetup)
	f := setUpAuth(t)
	wantStatus(t, f.call(t, "POST", "/v2/auth/providers", f.newProvider("calendar")), http.StatusOK)
	for _, query := range []string{"", "?setup_action=install&installation_id=7", "?setup_action=update&state=x&code=y"} {
		wantPage(t, f.open(t, "/v2/auth/setup/calendar"+query), http.StatusOK, "Installed")
	}
	wantPage(t, f.open(t, "/v2/auth/setup/calendar?setup_action=install&state=x&code=y"), http.StatusBadRequest, "Not connected")
	if refused := f.send(t, "GET", "/v2/auth/setup/calendar?installation_id=x", nil, nil); refused.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("got %s", refused.text)
	}
	asked := f.ask(t, object{"provider": "calendar", "scopes": []any{}, "user_id": "ada"})
	back := f.oauth.Consent(t, asked.id("url"))
	back.Set("setup_action", "install")
	wantPage(t, f.agree(t, "/api-host/v2/auth/setup/calendar?"+back.Encode()), http.StatusOK, "Connected")
}

// TestAWaitIsBounded waits longer than the server allows.
func TestAWaitIsBounded(t *testing.T) {
	t.Parallel()
	rule(t, authWait)
	f := setUpAuth(t, func(c *controlplane.Config) { c.WaitLimit = 10 * time.Millisecond })
	wantStatus(t, f.call(t, "POST", "/v2/auth/providers", f.newProvider("calendar")), http.StatusOK)
	asked := f.ask(t, object{"provider": "calendar", "scopes": []any{}, "user_id": "ada"})
	for query, want := range map[string]string{"": "pending", "?timeout=3600": "pending", "?timeout=0": "pending"} {
		if got := f.call(t, "GET", "/v2/auth/wait/"+asked.id("auth_id")+query, nil); got.member("status") != want || got.member("token") != nil {
			t.Errorf("%q: got %s", query, got.text)
		}
	}
	unbounded := setUpAuth(t)
	wantStatus(t, unbounded.call(t, "POST", "/v2/auth/providers", unbounded.newProvider("calendar")), http.StatusOK)
	asked = unbounded.ask(t, object{"provider": "calendar", "scopes": []any{}, "user_id": "ada"})
	if got := unbounded.call(t, "GET", "/v2/auth/wait/"+asked.id("auth_id")+"?timeout=1", nil); got.member("status") != "timeout" {
		t.Errorf("got %s", got.text)
	}
	if got := f.call(t, "GET", "/v2/auth/wait/anything", nil); got.member("status") != "not_found" {
		t.Errorf("got %s", got.text)
	}
}

// TestAUserIsAskedOnce repeats requests for a token under an Idempotency-Key, before a token
// exists and after.
func TestAUserIsAskedOnce(t *testing.T) {
	t.Parallel()
	rule(t, authKept)
	s := setUpAuth(t).stage(t)
	for _, base := range bases {
		ask := func(key string, body object) response {
			t.Helper()
			return s.send(t, "POST", base+"/v2/auth/authenticate", body, s.own.with(idempotencyKey, key+base))
		}
		asking := object{"provider": "calendar", "scopes": []any{}, "user_id": "bob"}
		first, again := ask("pending", asking), ask("pending", asking)
		if first.member("status") != "pending" || first.Header.Get("Cache-Control") == "no-store" || string(again.text) != string(first.text) || again.Header.Get(replayed) != "true" {
			t.Errorf("got %s, then %s", first.text, again.text)
		}
		// The answer is only for the caller of the first request.
		wantStatus(t, s.send(t, "POST", base+"/v2/auth/authenticate", asking, s.issue(t, workspace.Admin).with(idempotencyKey, "pending"+base)), http.StatusUnprocessableEntity)

		// The key of an answer that is not kept is free again.
		for _, user := range []string{"ada", "ada", "bob"} {
			asking := object{"provider": "calendar", "scopes": []any{}, "user_id": "ada"}
			if user != "ada" {
				asking = object{"provider": "calendar", "scopes": []any{}, "agent_id": "idle"}
			}
			got := ask("token", asking)
			if got.member("auth_id") != nil || got.Header.Get("Cache-Control") != "no-store" || got.Header.Get(replayed) != "" {
				t.Errorf("got %s with %v", got.text, got.Header)
			}
			if (got.member("token") != nil) != (user == "ada") {
				t.Errorf("%s: got %s", user, got.text)
			}
		}
	}
}

// person is an authenticator of people with bearer tokens.
type person struct{ workspace.Principal }

func (p person) Key(*http.Request) (workspace.Principal, error) { return p.Principal, nil }

// as is the same control plane for a signed-in user.
func (s *stage) as(t *testing.T, subject string, role workspace.Role) *authFixture {
	t.Helper()
	mux := web.NewMux(slog.New(slog.DiscardHandler))
	err := controlplane.Register(mux, controlplane.Config{
		Authenticator: person{workspace.Principal{Workspace: s.own.workspace, Subject: subject, Role: role}}, AuthService: s.service,
		BaseURL: func(context.Context) string { return callbackBase },
	})
	check.Must(t, err)
	f := *s.fixture
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return &authFixture{fixture: &f, service: s.service, oauth: s.oauth, log: s.log}
}

// TestWhoHasSignedInActsForNobodyElse has ada and bob sign in, and an admin.
func TestWhoHasSignedInActsForNobodyElse(t *testing.T) {
	t.Parallel()
	rule(t, authOthers)
	s := setUpAuth(t).stage(t)
	ada, bob, admin := s.as(t, "ada", workspace.Editor), s.as(t, "bob", workspace.Editor), s.as(t, "root", workspace.Admin)
	own := ada.call(t, "GET", "/v2/auth/tokens", nil)
	if list, _ := own.body.([]any); len(list) != 1 {
		t.Errorf("ada sees %s", own.text)
	}
	if none := bob.call(t, "GET", "/v2/auth/tokens", nil); string(none.text) != "[]\n" {
		t.Errorf("bob sees %s", none.text)
	}
	asking := object{"provider": "calendar", "scopes": []any{"read"}}
	if got := ada.ask(t, asking); got.member("status") != "completed" || got.member("user_id") != "ada" {
		t.Errorf("ada gets %s", got.text)
	}
	// The agent weather may use ada's token, and bob is not the agent.
	if got := bob.ask(t, with(asking, "agent_id", "weather")); got.member("status") != "pending" || got.member("user_id") != "bob" {
		t.Errorf("bob gets %s", got.text)
	}
	if got := s.ask(t, with(asking, "agent_id", "weather")); got.member("status") != "completed" || got.member("user_id") != "ada" {
		t.Errorf("the agent gets %s", got.text)
	}
	for path, body := range map[string]any{
		"GET /v2/auth/tokens?user_id=ada":                                 nil,
		"GET /v2/auth/tokens/exists?provider_id=calendar&user_id=ada":     nil,
		"GET /v2/auth/token-events?user_id=ada":                           nil,
		"POST /v2/auth/authenticate":                                      with(asking, "user_id", "ada"),
		"PATCH /v2/auth/tokens/" + s.token + "/metadata?user_id=ada":      object{"is_default": true},
		"POST /v2/auth/tokens/import":                                     object{"provider_id": "calendar", "access_token": "x", "user_id": "ada"},
		"POST /v2/auth/agents/clock/connections":                          object{"oauth_token_id": s.token, "user_id": "ada"},
		"POST /api-host/v2/auth/authenticate":                             with(asking, "ls_user_id", "ada"),
		"PATCH /api-host/v2/auth/tokens/x/metadata?user_id=ada&user_id=b": object{},
	} {
		method, path, _ := strings.Cut(path, " ")
		wantDetail(t, bob.call(t, method, path, body), http.StatusForbidden, "The credentials do not allow this for another user.")
		if answer := admin.call(t, method, path, body); answer.StatusCode == http.StatusForbidden {
			t.Errorf("an admin may not: %s", answer.text)
		}
	}
	if got := bob.call(t, "GET", "/v2/auth/wait/"+s.auth, nil); got.member("status") != "not_found" || got.member("token") != nil {
		t.Errorf("bob gets %s", got.text)
	}
	if got := ada.call(t, "GET", "/v2/auth/wait/"+s.auth, nil); got.member("status") != "completed" {
		t.Errorf("ada gets %s", got.text)
	}
	body := finishing(t, s)
	wantError(t, bob.call(t, "POST", "/v2/auth/callback/calendar", body), http.StatusBadRequest)
	if got := ada.call(t, "POST", "/v2/auth/callback/calendar", body); got.member("status") != "completed" {
		t.Errorf("ada gets %s", got.text)
	}
	nobody := s.as(t, "", workspace.Admin)
	if got := problems(t, nobody.call(t, "GET", "/v2/auth/tokens", nil)); len(got) != 1 || got[0] != (problem{"query.user_id", "missing"}) {
		t.Errorf("got %v", got)
	}
}

// TestAKeyHasTokensOfItsOwn names no user.
func TestAKeyHasTokensOfItsOwn(t *testing.T) {
	t.Parallel()
	rule(t, authOthers)
	s := setUpAuth(t).stage(t)
	wantStatus(t, s.call(t, "POST", "/v2/auth/tokens/import", object{"provider_id": "calendar", "access_token": "of-the-key", "expires_in_seconds": 600}), http.StatusOK)
	got := s.ask(t, object{"provider": "calendar", "scopes": []any{}})
	if got.id("token") != "of-the-key" || got.id("expires_at") == "" || got.id("user_id") == "" {
		t.Errorf("got %s", got.text)
	}
	if list, _ := s.call(t, "GET", "/v2/auth/tokens", nil).body.([]any); len(list) != 1 {
		t.Errorf("got %v", list)
	}
}
