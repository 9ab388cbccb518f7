package integration_test

import (
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/control/integration/githubtest"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

const (
	workspace = "0197a000-0000-7000-8000-000000000001"
	other     = "0197a000-0000-7000-8000-000000000002"
	unknown   = "0197a000-0000-7000-8000-00000000ffff"
)

// fixture is a service on a SQLite file, with a GitHub and a clock that the test moves.
type fixture struct {
	*integration.Service
	file   string
	table  *sqlite.Table
	clock  *fixtures.Clock
	github *githubtest.Server
	config integration.Config
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	file := filepath.Join(t.TempDir(), "table.db")
	key := fixtures.Key(t)
	moving := fixtures.NewMovingClock()
	tb := fixtures.TableAt(t, file, sqlite.WithClock(moving.Now))
	hub := githubtest.New(t, moving.Now)
	f := &fixture{file: file, table: tb, clock: moving, github: hub}
	f.config = integration.Config{Table: tb, Sealer: key, Now: moving.Now, Log: slog.New(slog.DiscardHandler), GitHub: app(hub)}
	var err error
	f.Service, err = integration.New(f.config)
	check.Must(t, err)
	hub.Install(acme)
	return f
}

func app(hub *githubtest.Server) *integration.App {
	return &integration.App{
		ID: githubtest.AppID, Slug: githubtest.Slug, ClientID: githubtest.ClientID, ClientSecret: githubtest.ClientSecret,
		PrivateKey: githubtest.PrivateKey(), WebURL: hub.URL, APIURL: hub.APIURL(), Transport: hub.Client().Transport,
	}
}

var (
	agent  = githubtest.Repository{ID: 11, Owner: "acme", Name: "agent", DefaultBranch: "main"}
	secret = githubtest.Repository{ID: 12, Owner: "acme", Name: "secret", DefaultBranch: "trunk"}
	acme   = githubtest.Installation{ID: 77, Account: "acme", AccountID: 500, Repositories: []githubtest.Repository{agent, secret}}
	ada    = githubtest.User{ID: 1, Login: "ada", Roles: map[string]string{"acme": "admin"}}
)

// begin returns the state of a new link.
func (f *fixture) begin(t *testing.T, workspace string) (state string) {
	t.Helper()
	link, err := f.BeginInstall(t.Context(), workspace)
	check.Must(t, err)
	u, err := url.Parse(link)
	check.Must(t, err)
	return u.Query().Get("state")
}

// install opens the link and calls the callback.
func (f *fixture) install(t *testing.T, workspace string) integration.Installation {
	t.Helper()
	i, err := f.CompleteInstall(t.Context(), integration.Callback{State: f.begin(t, workspace), Code: f.github.Consent(ada), InstallationID: acme.ID})
	check.Must(t, err)
	return i
}

func (f *fixture) repoURL(name string) string { return f.github.URL + "/" + name + ".git" }

// wantFault checks an error's kind and message.
func wantFault(t *testing.T, err error, kind fault.Kind, words ...string) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Fatalf("got %v, want a fault of kind %s", err, kind)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

// assertNoSecrets looks for secrets in all stored data, and in more texts.
func (f *fixture) assertNoSecrets(t *testing.T, secrets []string, more ...string) {
	t.Helper()
	for _, text := range append(more, fixtures.Stored(t, f.file)) {
		for _, secret := range append(secrets, f.github.Secrets()...) {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("a secret is in clear after %q", text[max(0, at-60):at])
			}
		}
	}
}
