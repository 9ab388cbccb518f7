package authservice_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestSlackGivesTheTokenThatIsAskedFor has answers in Slack's form: a bot's token at the top
// level, the user's own token below authed_user.
func TestSlackGivesTheTokenThatIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		parameter string // the parameter in the provider's auth_url
		answer    string
		asked     url.Values
		token     string
		lives     time.Duration
	}{
		"the bot's": {
			answer: `{"ok":true,"access_token":"xoxb-bot","token_type":"bot","scope":"chat:write,users:read","authed_user":{"id":"U1"}}`,
			asked:  url.Values{"scope": {"chat:write,users:read"}}, token: "xoxb-bot",
		},
		"the user's": {
			parameter: "?user_scope=",
			answer: `{"ok":true,"authed_user":{"id":"U1","access_token":"xoxp-user","token_type":"user","scope":"chat:write,users:read",` +
				`"refresh_token":"xoxe-1","expires_in":43200},"team":{"id":"T1","name":"team"}}`,
			asked: url.Values{"user_scope": {"chat:write,users:read"}}, token: "xoxp-user", lives: 12 * time.Hour,
		},
		"the user's, with scopes of the provider's": {
			parameter: "?team=T1&user_scope=users:read",
			answer:    `{"ok":true,"authed_user":{"access_token":"xoxp-user","token_type":"user","scope":"users:read,chat:write"}}`,
			asked:     url.Values{"user_scope": {"users:read,chat:write"}, "team": {"T1"}}, token: "xoxp-user",
		},
		"both, of which the bot's was asked for": {
			answer: `{"ok":true,"access_token":"xoxb-bot","token_type":"bot","scope":"chat:write,users:read","authed_user":{"access_token":"xoxp-user","scope":"admin"}}`,
			asked:  url.Values{"scope": {"chat:write,users:read"}}, token: "xoxb-bot",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			f.createProvider(t, func(p *authservice.NewProvider) { p.Type = authservice.Slack; p.AuthURL += c.parameter })
			request := asking("chat:write", "users:read")
			pending := f.ask(t, request, authservice.Pending)
			visited, err := url.Parse(pending.URL)
			check.Must(t, err)
			query := visited.Query()
			for _, parameter := range []string{"scope", "user_scope", "team"} {
				if !slices.Equal(query[parameter], c.asked[parameter]) {
					t.Errorf("%s is %q, want %q", parameter, query[parameter], c.asked[parameter])
				}
			}
			callback := back(f.oauth.visit(t, pending.URL))
			f.oauth.atToken(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, c.answer)
			})
			if outcome, err := f.Complete(t.Context(), callback); err != nil || outcome.Error != "" {
				t.Fatalf("got %+v (%v)", outcome, err)
			}
			held := f.tokens(t)[0]
			if c.lives == 0 != held.Expires.IsZero() || c.lives != 0 && held.Expires.Sub(held.Created).Round(time.Second) != c.lives {
				t.Errorf("it lives from %v to %v", held.Created, held.Expires)
			}
			if got := f.ask(t, request, authservice.Completed); got.Token != c.token {
				t.Errorf("the token is %s, want %s", got.Token, c.token)
			}
		})
	}
}

// TestSlackRefuses has a refusal with status 200, as Slack sends it.
func TestSlackRefuses(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"ok":false,"error":"invalid_code"}`:     "invalid_code",
		`{"ok":true,"authed_user":{"id":"U1"}}`:   "provider_answer_unusable",
		`{"ok":true,"authed_user":"U1"}`:          "provider_answer_unusable",
		`{"ok":true,"authed_user":{"id":"U1"},"a`: "provider_answer_unusable",
	} {
		f := setUp(t)
		f.createProvider(t, func(p *authservice.NewProvider) { p.Type = authservice.Slack; p.AuthURL += "?user_scope=" })
		callback := back(f.oauth.visit(t, f.ask(t, asking("chat:write"), authservice.Pending).URL))
		f.oauth.atToken(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, answer)
		})
		outcome, err := f.Complete(t.Context(), callback)
		if err != nil || outcome.Error != want || len(f.tokens(t)) > 0 {
			t.Errorf("%s: got %+v (%v), want %s", answer, outcome, err, want)
		}
	}
}

// TestSlackRevokesAccessTokens has the answers of Slack's auth.revoke, which takes no refresh
// token, and which has status 200 also when it refuses.
func TestSlackRevokesAccessTokens(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t, func(p *authservice.NewProvider) { p.Type = authservice.Slack })
	held := f.connect(t, asking("read"))
	ref, refusal := owner.Token(held.TokenID), "internal_error"
	f.oauth.at("/revoke", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.FormValue("token") != held.Token:
			fmt.Fprint(w, `{"ok":false,"error":"not_bearer_token"}`)
		case refusal != "":
			fmt.Fprintf(w, `{"ok":false,"error":%q}`, refusal)
		default:
			f.oauth.forget(r.Context(), held.Token)
			fmt.Fprint(w, `{"ok":true,"revoked":true}`)
		}
	})
	if err := f.DeleteToken(t.Context(), ref); !fault.Is(err, fault.Unavailable) || len(f.tokens(t)) != 1 {
		t.Errorf("Slack has an error: got %v, %d tokens", err, len(f.tokens(t)))
	}
	refusal = ""
	if err := f.DeleteToken(t.Context(), ref); err != nil || f.oauth.accepts(held.Token) || len(f.tokens(t)) != 0 {
		t.Errorf("got %v, accepted %t, %d tokens", err, f.oauth.accepts(held.Token), len(f.tokens(t)))
	}
	held, refusal = f.connect(t, asking("read")), "token_revoked"
	if err := f.DeleteToken(t.Context(), owner.Token(held.TokenID)); err != nil || len(f.tokens(t)) != 0 {
		t.Errorf("it was revoked before: got %v, %d tokens", err, len(f.tokens(t)))
	}
}
