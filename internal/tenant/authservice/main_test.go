package authservice_test

import (
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/secret/keyfile"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

const (
	workspace   = "0197a000-0000-7000-8000-000000000001"
	other       = "0197a000-0000-7000-8000-000000000002"
	unknown     = "0197a000-0000-7000-8000-00000000ffff"
	user        = "ada"
	providerID  = "calendar"
	redirectURI = "http://slipway.test/v2/auth/callback/calendar"
)

var owner = authservice.Owner{Workspace: workspace, User: user}

// fixture is a service on a SQLite file, with a provider and a clock that the test moves.
type fixture struct {
	*authservice.Service
	file   string
	table  *sqlite.Table
	key    *keyfile.Key
	clock  *fixtures.Clock
	oauth  *oauthServer
	log    *check.Log
	config authservice.Config
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	file := filepath.Join(t.TempDir(), "table.db")
	key := fixtures.Key(t)
	moving := fixtures.NewMovingClock()
	tb := fixtures.TableAt(t, file, sqlite.WithClock(moving.Now))
	f := &fixture{
		file: file, table: tb, key: key, oauth: newOAuthServer(t), log: &check.Log{}, clock: moving,
	}
	f.config = authservice.Config{
		Table: tb, Sealer: key, Now: f.clock.Now, Private: outbound.Everywhere,
		Log: slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	f.Service = authservice.New(f.config)
	return f
}

// newProvider returns a request that obeys every rule.
func (f *fixture) newProvider() authservice.NewProvider {
	return authservice.NewProvider{
		Workspace: workspace, ProviderID: providerID, ClientSecret: new(clientSecret),
		ProviderSpec: authservice.ProviderSpec{
			Name: "Calendar", ClientID: clientID, AuthURL: f.oauth.URL + "/authorize", TokenURL: f.oauth.URL + "/token",
			RevocationURL: f.oauth.URL + "/revoke", UsesPKCE: true,
		},
	}
}

func (f *fixture) createProvider(t *testing.T, change ...func(*authservice.NewProvider)) authservice.Provider {
	t.Helper()
	request := f.newProvider()
	for _, c := range change {
		c(&request)
	}
	p, err := f.CreateProvider(t.Context(), request)
	check.Must(t, err)
	return p
}

func asking(scopes ...string) authservice.AuthRequest {
	return authservice.AuthRequest{Workspace: workspace, ProviderID: providerID, User: user, Scopes: scopes, Default: true, RedirectURI: redirectURI}
}

func (f *fixture) ask(t *testing.T, r authservice.AuthRequest, want authservice.Status) authservice.Answer {
	t.Helper()
	answer, err := f.Authenticate(t.Context(), r)
	check.Must(t, err)
	if answer.Status != want {
		t.Fatalf("got status %s, want %s", answer.Status, want)
	}
	if awaits := want == authservice.Pending || want == authservice.TokenExpired; awaits != (answer.URL != "" && answer.AuthID != "") {
		t.Fatalf("got %s with URL %q and id %q", answer.Status, answer.URL, answer.AuthID)
	}
	if (want == authservice.Completed) != (answer.Token != "") {
		t.Fatalf("got %s with token %q", answer.Status, answer.Token)
	}
	return answer
}

func back(values url.Values) authservice.Callback {
	return authservice.Callback{
		ProviderID: providerID, State: values.Get("state"), Code: values.Get("code"), Issuer: values.Get("iss"),
		Error: values.Get("error"), ErrorDescription: values.Get("error_description"),
	}
}

// consent goes through the provider's page and the callback.
func (f *fixture) consent(t *testing.T, pending authservice.Answer) {
	t.Helper()
	outcome, err := f.Complete(t.Context(), back(f.oauth.visit(t, pending.URL)))
	if err != nil || outcome.Error != "" || outcome.AuthID != pending.AuthID {
		t.Fatalf("got outcome %+v (%v)", outcome, err)
	}
}

// connect has the user consent, and returns the token.
func (f *fixture) connect(t *testing.T, r authservice.AuthRequest) authservice.Answer {
	t.Helper()
	pending := f.ask(t, r, authservice.Pending)
	f.consent(t, pending)
	return f.wait(t, pending.AuthID, authservice.Completed)
}

func (f *fixture) wait(t *testing.T, authID string, want authservice.Status) authservice.Answer {
	t.Helper()
	answer, err := f.Wait(t.Context(), workspace, authID, 0)
	check.Must(t, err)
	if answer.Status != want {
		t.Fatalf("got status %s (%s: %s), want %s", answer.Status, answer.Error, answer.ErrorDescription, want)
	}
	return answer
}

func (f *fixture) tokens(t *testing.T) []authservice.Token {
	t.Helper()
	found, err := f.ListTokens(t.Context(), owner, authservice.TokenFilter{})
	check.Must(t, err)
	return found
}

// events are the types of a user's events, newest first.
func (f *fixture) events(t *testing.T) []authservice.EventType {
	t.Helper()
	found, err := f.ListEvents(t.Context(), owner, "", record.Window{Limit: 100})
	check.Must(t, err)
	types := []authservice.EventType{}
	for _, event := range found {
		types = append(types, event.Type)
	}
	return types
}

// assertNoSecrets searches all stored and logged data, and the texts in more, for the
// provider's tokens and codes and for the client secret.
func (f *fixture) assertNoSecrets(t *testing.T, more ...string) {
	t.Helper()
	texts := append([]string{f.log.String(), fixtures.Stored(t, f.file)}, more...)
	f.oauth.mu.Lock()
	defer f.oauth.mu.Unlock()
	secrets := append([]string{clientSecret, url.QueryEscape(clientSecret)}, f.oauth.issued...)
	for _, form := range f.oauth.asked {
		secrets = append(secrets, form.Get("code_verifier"), form.Get("refresh_token"))
	}
	for _, text := range texts {
		for _, secret := range secrets {
			if secret != "" && strings.Contains(text, secret) {
				at := strings.Index(text, secret)
				t.Errorf("a secret is in clear after %q", text[max(0, at-60):at])
			}
		}
	}
}
