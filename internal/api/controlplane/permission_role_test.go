package controlplane_test

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
)

// issue makes a key of a role in the own workspace.
func (f *fixture) issue(t *testing.T, role workspace.Role) tenant {
	t.Helper()
	_, key, err := f.keys.Issue(t.Context(), apikey.NewKey{Workspace: f.own.workspace, Role: role})
	check.Must(t, err)
	return tenant{f.own.workspace, key}
}

// TestRolesAreEnforced calls every operation with a key of every role: a refused request gets a
// 403 that names the permission, and has no effect.
func TestRolesAreEnforced(t *testing.T) {
	t.Parallel()
	rule(t, "Roles: what a role lacks is a 403.")
	verbs := map[string]string{"GET": "read", "POST": "create", "PATCH": "update", "DELETE": "delete"}
	may := map[workspace.Role][]string{
		workspace.Admin: {"read", "create", "update", "delete"}, workspace.Editor: {"read", "create", "update"}, workspace.Viewer: {"read"},
	}
	for role, allowed := range may {
		for name, o := range operations {
			if o.public {
				continue
			}
			for _, base := range bases {
				t.Run(string(role)+" "+base+" "+name, func(t *testing.T) {
					t.Parallel()
					f := setUp(t)
					created := f.call(t, "POST", "/v2/deployments", fromGit("weather"))
					wantStatus(t, created, http.StatusCreated)
					if o.deployed {
						f.deploy(t, created.id("id"))
					}
					method, path := request(name, created)
					started := f.engine.starts.Load()
					got := f.send(t, method, base+path, o.body(), f.issue(t, role).headers())
					permission := cmp.Or(string(o.permission), "deployments:"+verbs[method])
					_, verb, _ := strings.Cut(permission, ":")
					if slices.Contains(allowed, verb) {
						wantStatus(t, got, o.status)
						return
					}
					wantStatus(t, got, http.StatusForbidden)
					want := `The credentials do not allow this: the role "` + string(role) + `" lacks the permission ` + permission + "."
					if got.member("detail") != want {
						t.Errorf("got %v, want %s", got.body, want)
					}
					if f.engine.starts.Load() != started {
						t.Error("something was started")
					}
				})
			}
		}
	}
}

// TestAViewerSeesNoSecrets reads a deployment with a secret in every possible way.
func TestAViewerSeesNoSecrets(t *testing.T) {
	t.Parallel()
	rule(t, "`secrets` are shown to those who may change them, unless the server or the role redacts them; the mark sent back means unchanged.")
	f := setUp(t)
	const value = "open-sesame"
	body := fromGit("weather")
	body["secrets"] = []any{object{"name": "TOKEN", "value": value}}
	created := f.call(t, "POST", "/v2/deployments", body)
	wantStatus(t, created, http.StatusCreated)
	for role, sees := range map[workspace.Role]bool{workspace.Admin: true, workspace.Editor: true, workspace.Viewer: false} {
		caller := f.issue(t, role)
		for _, path := range []string{"", "/" + created.id("id"), "/" + created.id("id") + "/revisions", "/" + created.id("id") + "/revisions/" + created.id("latest_revision_id")} {
			got := f.send(t, "GET", "/v2/deployments"+path, nil, caller.headers())
			wantStatus(t, got, http.StatusOK)
			text := string(got.text)
			for _, leak := range []string{value, base64.StdEncoding.EncodeToString([]byte(value))} {
				if strings.Contains(text, leak) != (sees && leak == value && !strings.Contains(path, "revisions")) {
					t.Errorf("%s at %q: got %s", role, path, text)
				}
			}
			if !sees && !strings.Contains(path, "revisions") && !strings.Contains(text, `{"name":"TOKEN","value":"[redacted]"}`) {
				t.Errorf("a viewer does not see that there is a secret: %s", text)
			}
		}
	}
}

// TestABearerKeyIsAKey sends the key in the place where HTTP clients put tokens.
func TestABearerKeyIsAKey(t *testing.T) {
	t.Parallel()
	rule(t, "`X-Api-Key` and `X-Tenant-Id`, or the key as a bearer token; a key alone is enough.")
	f := setUp(t)
	got := f.send(t, "GET", "/v2/deployments", nil, map[string]string{auth.HeaderBearer: "Bearer " + f.own.key})
	wantStatus(t, got, http.StatusOK)
}
