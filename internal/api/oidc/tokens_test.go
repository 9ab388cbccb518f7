package oidc_test

import (
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/slipway-run/slipway/internal/api/oidc"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/tenant/trust"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestWhoATokenIs has an issuer of people and an issuer of programs, a workspace with members
// and a rule, and a workspace without them.
func TestWhoATokenIs(t *testing.T) {
	t.Parallel()
	people, programs, clock := newIssuer(t), newIssuer(t), fixtures.NewClock()
	person, program := people.newKey("one", jose.ES256), programs.newKey("one", jose.RS256)
	tb := fixtures.Table(t, sqlite.WithClock(clock.Now))
	tokens := &oidc.Tokens{
		Verifier: oidc.NewVerifier([]oidc.Issuer{
			{URL: people.URL, Audience: audience, Members: true}, {URL: programs.URL, Audience: audience},
		}, client(t), clock.Now),
		Workspaces: workspace.NewStore(tb, clock.Now), Rules: trust.NewStore(tb, clock.Now),
	}
	team, err := tokens.Workspaces.Create(t.Context(), "team")
	check.Must(t, err)
	other, err := tokens.Workspaces.Create(t.Context(), "other")
	check.Must(t, err)
	for user, role := range map[string]workspace.Role{"ann@example.test": workspace.Viewer, "user-1": workspace.Editor, "mallory@example.test": workspace.Admin} {
		from := ""
		if user == "user-1" {
			from = people.URL
		}
		_, err := tokens.Workspaces.AddMember(t.Context(), team.ID, user, from, role)
		check.Must(t, err)
	}
	for _, issuer := range []string{programs.URL, people.URL} {
		_, err := tokens.Rules.Create(t.Context(), team.ID, trust.Rule{
			Issuer: issuer, Role: workspace.Editor, Claims: map[string]string{"repository_id": "7", "ref": "refs/heads/main"},
		})
		check.Must(t, err)
	}
	type changes = map[string]any
	const (
		noMember = "not a member"
		noRule   = "No trust rule"
	)
	for name, c := range map[string]struct {
		from      *issuer
		workspace string
		claims    changes
		want      workspace.Role
		words     string
	}{
		"a subject":                       {people, team.ID, changes{"sub": "user-1"}, workspace.Editor, ""},
		"the workspace in capitals":       {people, strings.ToUpper(team.ID), changes{"sub": "user-1"}, workspace.Editor, ""},
		"an address":                      {people, team.ID, changes{"email": "Ann@example.test", "email_verified": true}, workspace.Viewer, ""},
		"the stronger of both":            {people, team.ID, changes{"sub": "user-1", "email": "ann@example.test", "email_verified": true}, workspace.Editor, ""},
		"an address nobody checked":       {people, team.ID, changes{"email": "mallory@example.test", "email_verified": false}, "", noMember},
		"an address with a textual check": {people, team.ID, changes{"email": "mallory@example.test", "email_verified": "true"}, "", noMember},
		"a subject like an address":       {people, team.ID, changes{"sub": "mallory@example.test"}, "", noMember},
		"a stranger":                      {people, team.ID, changes{"sub": "user-2"}, "", noMember},
		"another issuer's subject":        {people, team.ID, changes{"sub": "user-3"}, "", noMember},
		"no subject":                      {people, team.ID, changes{"sub": nil}, "", noMember},
		"a person, another workspace":     {people, other.ID, changes{"sub": "user-1"}, "", noMember},
		"a person is no program":          {people, team.ID, changes{"ref": "refs/heads/main"}, "", noMember},
		"no workspace":                    {people, "", changes{"sub": "user-1"}, "", "X-Tenant-Id"},
		"no id of a workspace":            {people, "team", changes{"sub": "user-1"}, "", noMember},
		"a program":                       {programs, team.ID, changes{"ref": "refs/heads/main"}, workspace.Editor, ""},
		"a program, another ref":          {programs, team.ID, changes{"ref": "refs/heads/x"}, "", "in ref."},
		"a program, another workspace":    {programs, other.ID, changes{"ref": "refs/heads/main"}, "", noRule},
		"a program, no workspace":         {programs, "x", changes{"ref": "refs/heads/main"}, "", noRule},
		"a program is no person":          {programs, team.ID, changes{"sub": "user-1"}, "", "in ref."},
	} {
		key := program
		if c.from == people {
			key = person
		}
		claims := c.from.claims(clock.Now(), c.claims)
		got, err := tokens.Authenticate(t.Context(), key.sign(t, claims), c.workspace)
		if c.want == "" {
			if !fault.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), c.words) || got != (workspace.Principal{}) {
				t.Errorf("%s: got %+v (%v), want %q", name, got, err, c.words)
			}
			continue
		}
		subject, _ := claims["sub"].(string)
		want := workspace.Principal{Workspace: team.ID, Role: c.want, Subject: subject + " of " + c.from.URL}
		if err != nil || got != want {
			t.Errorf("%s: got %+v (%v), want %+v", name, got, err, want)
		}
	}
	if _, err := tokens.Authenticate(t.Context(), person.sign(t, programs.claims(clock.Now(), nil)), team.ID); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("signed by another issuer: got %v", err)
	}
}
