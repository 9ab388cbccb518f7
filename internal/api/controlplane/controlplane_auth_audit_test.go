package controlplane_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// actions are the actions of the workspace's audit log, oldest first.
func (f *fixture) actions(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, entry := range f.call(t, "GET", "/v2/audit-log?limit=100", nil).member("resources").([]any) {
		entry := entry.(object)
		if entry["outcome"] != "succeeded" || entry["resource"] == "" {
			t.Errorf("got entry %v", entry)
		}
		found = append(found, entry["action"].(string))
	}
	slices.Reverse(found)
	return found
}

// TestWhatIsDoneWithProvidersAndTokensIsInTheAuditLog does each action once.
func TestWhatIsDoneWithProvidersAndTokensIsInTheAuditLog(t *testing.T) {
	t.Parallel()
	f := setUpAuth(t)
	begun := len(f.actions(t))
	s := f.stage(t)
	wantStatus(t, f.call(t, "DELETE", s.fill("/v2/auth/agents/{agent_id}/connections/{connection_id}"), nil), http.StatusNoContent)
	imported := f.call(t, "POST", "/v2/auth/tokens/import", object{"provider_id": "calendar", "user_id": "ada", "access_token": "some-access"})
	wantStatus(t, imported, http.StatusOK)
	wantStatus(t, f.call(t, "DELETE", s.fill("/v2/auth/tokens/{token_id}?user_id=ada"), nil), http.StatusNoContent)
	wantStatus(t, f.call(t, "PATCH", "/v2/auth/providers/calendar", object{"name": "Other"}), http.StatusOK)
	moved := object{"token_url": f.oauth.URL + "/elsewhere"}
	wantDetail(t, f.call(t, "PATCH", "/v2/auth/providers/calendar", moved), http.StatusBadRequest,
		"client_secret is required when auth_url, token_url or revocation_url changes: the stored secret is never sent to another address.")
	moved["client_secret"] = "theirs"
	wantStatus(t, f.call(t, "PATCH", "/v2/auth/providers/calendar", moved), http.StatusOK)
	wantStatus(t, f.call(t, "DELETE", "/v2/auth/providers/calendar", nil), http.StatusOK)
	want := []string{
		"create_auth_provider", "connect_auth_token", "disconnect_auth_token", "import_auth_token", "delete_auth_token", "update_auth_provider",
		// A token of the former address is deleted.
		"update_auth_provider", "delete_auth_token", "delete_auth_provider",
	}
	if diff := cmp.Diff(want, f.actions(t)[begun:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
