package controlplane_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/api/oidc"
	"github.com/slipway-run/slipway/internal/api/oidc/oidctest"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// tokenFixture is the control plane that accepts tokens of an issuer of people and of an issuer
// of programs. The tests set the clock of the tokens.
type tokenFixture struct {
	*fixture
	people, ci *oidctest.Issuer
	clock      fixtures.RunningClock
}

func setUpTokens(t *testing.T) *tokenFixture {
	t.Helper()
	f := &tokenFixture{fixture: setUp(t), people: oidctest.New(t), ci: oidctest.New(t)}
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	config := f.config
	config.Authenticator = auth.NewWithTokens(f.keys, &oidc.Tokens{
		Verifier: oidc.NewVerifier([]oidc.Issuer{
			{URL: f.people.URL, Audience: oidctest.Audience, Members: true}, {URL: f.ci.URL, Audience: oidctest.Audience},
		}, client, f.clock.Now),
		Workspaces: config.Workspaces, Rules: config.Rules,
	})
	mux := web.NewMux(slog.New(slog.DiscardHandler))
	check.Must(t, controlplane.Register(mux, config))
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

// bearer are the credentials of a token.
func (f *tokenFixture) bearer(token string) map[string]string {
	return map[string]string{auth.HeaderBearer: token, auth.HeaderTenant: f.own.workspace}
}

// TestAPipelineNeedsNoStoredKey has an admin trust a repository's main branch. From then on the
// jobs of this branch deploy, and no other jobs do.
func TestAPipelineNeedsNoStoredKey(t *testing.T) {
	t.Parallel()
	rule(t, trustedJobs)
	f := setUpTokens(t)
	job := func(repository, ref string) map[string]string {
		return f.bearer(f.ci.Token(f.clock.Now(), object{"sub": "repo:team/agent", "repository_id": repository, "ref": ref}))
	}
	create := func(name string, headers map[string]string) response {
		return f.send(t, "POST", "/v2/deployments", fromGit(name), headers)
	}
	const stranger = "No trust rule of the workspace admits this token."
	wantDetail(t, create("too-early", job("7", "refs/heads/main")), http.StatusForbidden, stranger)
	made := f.call(t, "POST", "/v2/workspaces/current/trust-rules", object{
		"issuer": f.ci.URL, "role": "editor", "claims": object{"repository_id": "7", "ref": "refs/heads/main"},
	})
	wantStatus(t, made, http.StatusCreated)
	created := create("weather", job("7", "refs/heads/main"))
	wantStatus(t, created, http.StatusCreated)
	wantDetail(t, create("theirs", job("8", "refs/heads/main")), http.StatusForbidden, stranger)
	wantDetail(t, create("branch", job("7", "refs/heads/x")), http.StatusForbidden, "No trust rule of the workspace admits this token: it differs from a rule in ref.")
	another := job("7", "refs/heads/main")
	another[auth.HeaderTenant] = f.other.workspace
	wantDetail(t, create("elsewhere", another), http.StatusForbidden, stranger)
	elsewhere := oidctest.New(t)
	for what, claims := range map[string]object{"forged": {"iss": f.ci.URL}, "unknown": {}} {
		token := elsewhere.Token(f.clock.Now(), with(with(claims, "repository_id", "7"), "ref", "refs/heads/main"))
		wantStatus(t, create(what, f.bearer(token)), http.StatusUnauthorized)
	}
	wantStatus(t, f.send(t, "DELETE", "/v2/deployments/"+created.id("id"), nil, job("7", "refs/heads/main")), http.StatusForbidden)
	entries, _ := f.call(t, "GET", "/v2/audit-log?action=create_deployment", nil).member("resources").([]any)
	if len(entries) != 1 || entries[0].(object)["subject"] != "repo:team/agent of "+f.ci.URL || entries[0].(object)["key_id"] != nil {
		t.Errorf("the audit log has %v", entries)
	}
	wantStatus(t, f.call(t, "DELETE", "/v2/workspaces/current/trust-rules/"+made.id("id"), nil), http.StatusNoContent)
	wantDetail(t, create("too-late", job("7", "refs/heads/main")), http.StatusForbidden, stranger)
}

// TestAMembersTokenActsWithTheMembersRole changes the role of a person, who sends the same
// token all the time.
func TestAMembersTokenActsWithTheMembersRole(t *testing.T) {
	t.Parallel()
	rule(t, memberTokens)
	f := setUpTokens(t)
	ada := f.bearer(f.people.Token(f.clock.Now(), object{"sub": "u1", "email": "Ada@example.test", "email_verified": true}))
	bob := f.bearer(f.people.Token(f.clock.Now(), object{"sub": "u2"}))
	wants := func(who map[string]string, read, create, manage int) {
		t.Helper()
		wantStatus(t, f.send(t, "GET", "/v2/deployments", nil, who), read)
		wantStatus(t, f.send(t, "POST", "/v2/deployments", object{}, who), create)
		wantStatus(t, f.send(t, "POST", memberPath, object{}, who), manage)
	}
	const ok, bad, no = http.StatusOK, http.StatusUnprocessableEntity, http.StatusForbidden
	wants(ada, no, no, no)
	added := f.call(t, "POST", memberPath, object{"user": "ada@example.test", "role": "viewer"})
	wantStatus(t, added, http.StatusCreated)
	wantStatus(t, f.call(t, "POST", memberPath, object{"user": "u2", "issuer": f.people.URL, "role": "admin"}), http.StatusCreated)
	for role, want := range map[string][3]int{"viewer": {ok, no, no}, "editor": {ok, bad, no}, "admin": {ok, bad, bad}} {
		wantStatus(t, f.send(t, "PATCH", memberPath+"/"+added.id("id"), object{"role": role}, bob), http.StatusOK)
		wants(ada, want[0], want[1], want[2])
		if got := f.send(t, "GET", "/v2/workspaces/current", nil, ada); got.member("role") != role {
			t.Errorf("got %s, want the role %s", got.text, role)
		}
	}
	wantStatus(t, f.send(t, "DELETE", memberPath+"/"+added.id("id"), nil, bob), http.StatusNoContent)
	wants(ada, no, no, no)
	if log := f.call(t, "GET", "/v2/audit-log?action=remove_member", nil); !strings.Contains(string(log.text), `"subject":"u2 of `+f.people.URL+`"`) {
		t.Errorf("the audit log does not say who removed her: %s", log.text)
	}
}

// TestTheKeysOfAnIssuerAreRotated publishes a new key beside the old key, and then alone.
func TestTheKeysOfAnIssuerAreRotated(t *testing.T) {
	t.Parallel()
	rule(t, rotatedIssuer)
	f := setUpTokens(t)
	wantStatus(t, f.call(t, "POST", memberPath, object{"user": "u1", "issuer": f.people.URL, "role": "viewer"}), http.StatusCreated)
	read := func(token string) response {
		return f.send(t, "GET", "/v2/deployments", nil, f.bearer(token))
	}
	token := func() string {
		return f.people.Token(f.clock.Now().Add(time.Hour), object{"sub": "u1", "iat": f.clock.Now().Unix()})
	}
	first := token()
	wantStatus(t, read(first), http.StatusOK)
	f.people.Rotate()
	// The server asked the issuer a moment ago.
	wantStatus(t, read(token()), http.StatusUnauthorized)
	f.clock.Pass(30 * time.Second)
	wantStatus(t, read(token()), http.StatusOK)
	wantStatus(t, read(first), http.StatusOK)
	f.people.Withdraw()
	f.clock.Pass(time.Hour)
	wantStatus(t, read(first), http.StatusUnauthorized)
	wantStatus(t, read(token()), http.StatusOK)
	f.clock.Pass(3 * time.Hour)
	wantDetail(t, read(first), http.StatusUnauthorized, "The bearer token is signed with a key (kid) that its issuer does not publish.")
}
