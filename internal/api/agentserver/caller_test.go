package agentserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/api/auth"
)

// TestAttackAKeyNamesAnotherWorkspace sends a valid key to the server of a deployment of the
// key's workspace, with the name of a workspace to which the key does not belong.
func TestAttackAKeyNamesAnotherWorkspace(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	for name, headers := range map[string]map[string]string{
		"a key":    {auth.HeaderKey: f.key},
		"a bearer": {auth.HeaderBearer: "Bearer " + f.key},
	} {
		for tenant, status := range map[string]int{
			"": http.StatusOK, f.deployment.Workspace: http.StatusOK, strings.ToUpper(f.deployment.Workspace): http.StatusOK, unknownID: http.StatusForbidden, "none": http.StatusForbidden,
		} {
			if tenant != "" {
				headers[auth.HeaderTenant] = tenant
			}
			if answer := f.send(t, "POST", f.path("/threads/search"), object{}, headers); answer.StatusCode != status {
				t.Errorf("%s for %q: %d, want %d", name, tenant, answer.StatusCode, status)
			}
			delete(headers, auth.HeaderTenant)
		}
	}
}
