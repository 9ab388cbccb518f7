package standalone_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/oidc"
	"github.com/slipway-run/slipway/internal/api/oidc/oidctest"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAttackAViewersSessionWrites signs members in at an issuer: the session of a viewer writes
// nothing, the session of an editor deletes nothing, and both end with the membership.
func TestAttackAViewersSessionWrites(t *testing.T) {
	t.Parallel()
	issuer := oidctest.New(t)
	c, stop := serveWith(t, standalone.Config{
		Data: t.TempDir(), SignIn: &oidc.Issuer{URL: issuer.URL, Audience: oidctest.ClientID, Members: true}, Log: slog.New(slog.DiscardHandler),
	})
	defer stop()
	admin := map[string]string{"X-Api-Key": c.APIKey}
	list, unknown := c.BaseURL+"/v2/deployments", c.BaseURL+"/v2/deployments/0197a000-0000-7000-8000-00000000dead"
	wantStatus(t, "an ID token is no credential", http.MethodGet, list, map[string]string{
		"Authorization": "Bearer " + issuer.IDToken(time.Now(), object{"email": "viewer@example.test", "email_verified": true}), "X-Tenant-Id": c.TenantID,
	}, http.StatusUnauthorized)
	for _, role := range []string{"viewer", "editor"} {
		user := role + "@example.test"
		status, text := ask(t, http.MethodPost, c.BaseURL+"/v2/workspaces/current/members", admin, object{"user": user, "role": role})
		if status != http.StatusCreated {
			t.Fatalf("got %d %s", status, text)
		}
		var member struct{ ID string }
		check.Must(t, json.Unmarshal(text, &member))
		token := issuer.IDToken(time.Now(), object{"sub": role, "email": user, "email_verified": true})
		status, text = ask(t, http.MethodPost, c.BaseURL+"/sign-in/token", nil, object{"id_token": token})
		if status != http.StatusCreated {
			t.Fatalf("got %d %s", status, text)
		}
		var granted struct{ Token string }
		check.Must(t, json.Unmarshal(text, &granted))
		session := map[string]string{"Authorization": "Bearer " + granted.Token}
		body := object{
			"name": role, "source": "external_docker", "secrets": []any{}, "source_config": object{}, "source_revision_config": object{"image_uri": "registry.test/agent:1"},
		}
		create := map[string]int{"viewer": http.StatusForbidden, "editor": http.StatusCreated}[role]
		if status, text := ask(t, http.MethodPost, list, session, body); status != create {
			t.Errorf("%s: create: got %d %s, want %d", role, status, text, create)
		}
		wantStatus(t, role+": read", http.MethodGet, list, session, http.StatusOK)
		wantStatus(t, role+": delete", http.MethodDelete, unknown, session, http.StatusForbidden)
		wantStatus(t, role+": keys", http.MethodGet, c.BaseURL+"/v2/api-keys", session, http.StatusForbidden)
		wantStatus(t, role+": removed", http.MethodDelete, c.BaseURL+"/v2/workspaces/current/members/"+member.ID, admin, http.StatusNoContent)
		wantStatus(t, role+": read afterwards", http.MethodGet, list, session, http.StatusUnauthorized)
	}
	_, log := ask(t, http.MethodGet, c.BaseURL+"/v2/audit-log?action=create_deployment", admin, nil)
	if !strings.Contains(string(log), `"subject":"editor of `+issuer.URL+`"`) {
		t.Errorf("the audit log does not say that it was the editor: %s", log)
	}
}
