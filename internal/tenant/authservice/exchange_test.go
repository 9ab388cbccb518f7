package authservice_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
)

// TestAFailedExchangeIsTold lets the token endpoint misbehave, and checks the error text that
// remains.
func TestAFailedExchangeIsTold(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.config.Timeout = 250 * time.Millisecond
	f.Service = authservice.New(f.config)
	f.createProvider(t)
	text := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			w.Write([]byte(body))
		}
	}
	const json = "application/json"
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"refusal":          {text(400, json, `{"error":"invalid_grant","error_description":"used"}`), "invalid_grant"},
		"refusal with 200": {text(200, json, `{"error":"bad_code"}`), "bad_code"},
		"garbage":          {text(200, json, "\x00<html>"), "provider_answer_unusable"},
		"empty":            {text(200, json, ""), "provider_answer_unusable"},
		"no token":         {text(200, json, `{"token_type":"Bearer"}`), "provider_answer_unusable"},
		"a number":         {text(200, json, `{"access_token":7}`), "provider_answer_unusable"},
		"a header's end":   {text(200, json, `{"access_token":"a\r\nX: y","token_type":"Bearer"}`), "provider_answer_unusable"},
		"another type":     {text(200, json, `{"access_token":"a","token_type":"mac"}`), "provider_answer_unusable"},
		"down":             {text(503, "text/plain", "busy"), "provider_unreachable"},
		"huge":             {text(200, json, `{"access_token":"a","x":"`+strings.Repeat("y", 1<<20)+`"}`), "provider_answer_unusable"},
		"huge header":      {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("y", 1<<18)) }, "provider_"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, "provider_answer_unusable"},
		"a closed connection": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "provider_unreachable"},
		"slow": {func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}, "provider_unreachable"},
		"slow body": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, "provider_"},
		"what it was told": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", json)
			w.WriteHeader(http.StatusBadRequest)
			w.Write([]byte(`{"error":"invalid_grant","error_description":"code ` + r.FormValue("code") + `, secret ` + clientSecret + `"}`))
		}, "invalid_grant"},
		"control characters": {text(400, json, `{"error":"in\u001bvalid\u0000","error_description":"`+strings.Repeat("z", 2000)+`"}`), "in valid"},
	} {
		f.oauth.recover()
		pending := f.ask(t, asking("read"), authservice.Pending)
		callback := back(f.oauth.visit(t, pending.URL))
		f.oauth.atToken(func(w http.ResponseWriter, r *http.Request) {
			r.ParseForm() // so that the server notices when the client disconnects
			c.answer(w, r)
		})
		outcome, err := f.Complete(t.Context(), callback)
		if err != nil || !strings.HasPrefix(outcome.Error, c.want) || len(outcome.ErrorDescription) > 300 {
			t.Errorf("%s: got %+v (%v), want %s", name, outcome, err, c.want)
		}
		if answer := f.wait(t, pending.AuthID, authservice.NotFound); answer.Error != outcome.Error || answer.ErrorDescription != outcome.ErrorDescription {
			t.Errorf("%s: who waits is told %+v", name, answer)
		}
		f.assertNoSecrets(t, outcome.Error, outcome.ErrorDescription)
	}
	if got := f.tokens(t); len(got) != 0 {
		t.Errorf("got %d tokens", len(got))
	}
}

// TestNoRedirectIsFollowed has a token endpoint that names another server, which would get code and
// secret.
func TestNoRedirectIsFollowed(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was sent on", r.FormValue("code")) }))
	t.Cleanup(thief.Close)
	callback := back(f.oauth.visit(t, f.ask(t, asking("read"), authservice.Pending).URL))
	f.oauth.atToken(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
	})
	if outcome, err := f.Complete(t.Context(), callback); err != nil || outcome.Error == "" {
		t.Errorf("got %+v (%v)", outcome, err)
	}
}

// TestAProviderThatIsDeletedMeanwhileGetsNoToken deletes the provider while the code is
// exchanged.
func TestAProviderThatIsDeletedMeanwhileGetsNoToken(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	pending := f.ask(t, asking("read"), authservice.Pending)
	callback := back(f.oauth.visit(t, pending.URL))
	f.oauth.set(func() {
		f.oauth.intercept = func(_ http.ResponseWriter, r *http.Request) bool {
			if err := f.DeleteProvider(r.Context(), workspace, providerID, nil); err != nil {
				t.Error(err)
			}
			return false
		}
	})
	if outcome, err := f.Complete(t.Context(), callback); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %+v (%v)", outcome, err)
	}
	if f.wait(t, pending.AuthID, authservice.NotFound); len(f.tokens(t)) != 0 {
		t.Error("there is a token")
	}
}

// TestWhatIsReadFromAnAnswer has providers whose answers describe a token differently.
func TestWhatIsReadFromAnAnswer(t *testing.T) {
	t.Parallel()
	idToken := "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"1","email":"ada@provider.test"}`)) + ".sig"
	for name, c := range map[string]struct {
		kind   authservice.ProviderType
		asked  []string
		answer string
		scopes []string
		label  string
		lives  time.Duration
		url    string // a part of the consent URL
	}{
		"no scope named":    {asked: []string{"a", "b"}, answer: `"expires_in":60`, scopes: []string{"a", "b"}, lives: time.Minute, url: "scope=a+b"},
		"fewer scopes":      {asked: []string{"a", "b"}, answer: `"scope":"a"`, scopes: []string{"a"}},
		"more scopes":       {asked: []string{"a"}, answer: `"scope":"a b"`, scopes: []string{"a", "b"}},
		"protocol's scopes": {asked: []string{"a", "offline_access", "openid"}, answer: `"scope":"a"`, scopes: []string{"a", "offline_access", "openid"}},
		"a label":           {answer: `"id_token":"` + idToken + `"`, label: "ada@provider.test"},
		"a bad ID token":    {answer: `"id_token":"a.!.c"`},
		"a time in quotes":  {answer: `"expires_in":"120"`, lives: 2 * time.Minute},
		"no time":           {answer: `"expires_in":0`},
		"negative time":     {answer: `"expires_in":-5`},
		"Microsoft":         {kind: authservice.Microsoft, asked: []string{"a"}, answer: `"scope":"a"`, scopes: []string{"a"}, url: "scope=a+offline_access"},
		"Salesforce":        {kind: authservice.Salesforce, asked: []string{"a"}, answer: `"scope":"a"`, scopes: []string{"a"}, url: "scope=a+refresh_token", lives: 15 * time.Minute},
		"Slack":             {kind: authservice.Slack, asked: []string{"a", "b"}, answer: `"scope":"a,b","token_type":"bot"`, scopes: []string{"a", "b"}, url: "scope=a%2Cb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			f.createProvider(t, func(p *authservice.NewProvider) { p.Type = c.kind })
			pending := f.ask(t, asking(c.asked...), authservice.Pending)
			if !strings.Contains(pending.URL, c.url) {
				t.Errorf("got %s, want %s in it", pending.URL, c.url)
			}
			callback := back(f.oauth.visit(t, pending.URL))
			f.oauth.atToken(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"access_token":"some-access",%s}`, c.answer)
			})
			if outcome, err := f.Complete(t.Context(), callback); err != nil || outcome.Error != "" {
				t.Fatalf("got %+v (%v)", outcome, err)
			}
			got := f.tokens(t)[0]
			if !slices.Equal(got.Scopes, c.scopes) || got.Label != c.label {
				t.Errorf("got scopes %q, label %q", got.Scopes, got.Label)
			}
			if c.lives == 0 != got.Expires.IsZero() || c.lives != 0 && got.Expires.Sub(got.Created).Round(time.Second) != c.lives {
				t.Errorf("it lives from %v to %v", got.Created, got.Expires)
			}
		})
	}
}

// TestAnAnswerInFormEncoding has an answer in the form that some providers use.
func TestAnAnswerInFormEncoding(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	callback := back(f.oauth.visit(t, f.ask(t, asking("a"), authservice.Pending).URL))
	f.oauth.atToken(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-www-form-urlencoded")
		w.Write([]byte(url.Values{"access_token": {"some-access"}, "scope": {"a,b"}, "expires_in": {"3600"}}.Encode()))
	})
	if _, err := f.Complete(t.Context(), callback); err != nil {
		t.Fatal(err)
	}
	got := f.tokens(t)[0]
	if !slices.Equal(got.Scopes, []string{"a", "b"}) || got.Expires.Sub(got.Created).Round(time.Minute) != time.Hour {
		t.Errorf("got %+v", got)
	}
}

// TestTheRefreshTokenOfTheFirstConsentIsKept has a provider that gives a refresh token with
// the first consent only.
func TestTheRefreshTokenOfTheFirstConsentIsKept(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	f.connect(t, asking("read"))
	callback := back(f.oauth.visit(t, f.ask(t, asking("write"), authservice.Pending).URL))
	f.oauth.atToken(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"access_token":"second-access","expires_in":3600}`))
	})
	if _, err := f.Complete(t.Context(), callback); err != nil {
		t.Fatal(err)
	}
	f.oauth.recover()
	f.clock.Pass(nearEnd)
	if got := f.ask(t, asking("read"), authservice.Completed); !f.oauth.accepts(got.Token) || f.oauth.granted("refresh_token") != 1 {
		t.Errorf("it was refreshed %d times", f.oauth.granted("refresh_token"))
	}
}
